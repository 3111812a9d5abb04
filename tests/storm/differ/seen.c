// SPDX-License-Identifier: BSD-3-Clause
#include "seen.h"

#include <unistd.h>

#include "end.h"
#include "players.h"
#include "tests/storm/world.h"

enum {
	EXIT_MS = 1000, /* until the next one exits, at most */
	QUIET_ONCE_IN = 1024,
};

/* The same round is never played again. */
static uint64_t round_tag(const struct end *e)
{
	return (uint64_t)(e->epoch << 8 | e->round) << 32;
}

static _Atomic uint64_t *upto(const struct end *e, unsigned side, unsigned lane, unsigned poster)
{
	return &board->link[e->link].seen[side][lane][poster];
}

/*
 * It is this process's turn to exit, and nobody kills it just now.  Best is a message whose receive
 * another thread is still posting: it helps the other end with that.
 */
static bool is_due(struct end *e, unsigned slot)
{
	uint64_t now = now_ns(), due = atomic_load(&board->next_exit);

	if (board->without & DISTURB_EXITS || now < due || atomic_load(&board->stop))
		return false;
	if (atomic_load(&e->posting) != slot + 1 && !rnd_once_in(&e->rnd, QUIET_ONCE_IN))
		return false;
	return atomic_compare_exchange_strong(
		       &board->next_exit, &due, now + rnd_below(&e->rnd, EXIT_MS) * 1000000ull) &&
	       players_leave(e->link, e->side);
}

void seen_note(struct end *e, unsigned lane, unsigned poster, uint32_t index, unsigned slot)
{
	atomic_store(upto(e, e->side, lane, poster), round_tag(e) | (index + 1));
	if (is_due(e, slot))
		_exit(PLAYER_LEFT);
}

bool seen_by_other(const struct end *e, uint32_t index)
{
	const struct request *q = &e->r.r[index];
	uint64_t seen = atomic_load(upto(e, !e->side, q->lane, q->poster));

	return op_is_message(q->op) && seen > (round_tag(e) | index) &&
	       seen >> 32 == round_tag(e) >> 32;
}
