// SPDX-License-Identifier: BSD-3-Clause
#include "link.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "broken.h"
#include "compare.h"
#include "disturb.h"
#include "post.h"
#include "tests/storm/world.h"

enum { EPOCHS = 1 << 12 /* of one life */, STACK_BYTES = (768 << 10) + (80 << 10) };

/* Late receives, by a thread of their own: it helps the other end while this one polls. */
static void *post_late(void *arg)
{
	while (post_receives(arg, 1))
		;
	return NULL;
}

/* Polls until all of the round has completed here.  False: the other end was killed. */
static bool complete(struct end *e, unsigned left)
{
	uint64_t since = now_ns();
	struct ibv_wc wc;
	unsigned idle = 0, missing = compare_missing(e, NULL, 0);
	bool is_send;

	while (missing) {
		if (end_poll(e, &wc, &is_send)) {
			compare_completion(e, &wc, is_send);
			missing--;
			idle = 0;
			since = now_ns();
			continue;
		}
		if (left)
			left = post_receives(e, rnd_range(&e->rnd, 1, 4));
		if (end_is_broken(e))
			return false;
		end_rest(e, idle++);
		if (idle % 256 == 0)
			compare_patience(e, since);
	}
	return true;
}

/* The same; late receives are posted as it goes. */
static bool complete_all(struct end *e)
{
	unsigned left = post_receives(e, 0);
	bool by_thread = left && rnd_once_in(&e->rnd, 2), through;
	pthread_t thread;

	if (by_thread && pthread_create(&thread, NULL, post_late, e))
		end_fail(e, "pthread_create: %m");
	through = complete(e, by_thread ? 0 : left);
	if (by_thread)
		pthread_join(thread, NULL);
	if (through)
		post_receives(e, UINT32_MAX);
	return through;
}

/* The other end is through, too: nothing more may come but datagrams. */
static void take_rest(struct end *e)
{
	uint64_t since = now_ns();
	struct ibv_wc wc;
	bool is_send;

	/* (Where a thread of the sender's does it, nobody was told when a datagram had gone.) */
	do
		while (end_poll(e, &wc, &is_send))
			compare_completion(e, &wc, is_send); /* says what is wrong with it */
	while (compare_awaits(e, since));
	compare_arrived(e);
}

static unsigned early_receives(const struct end *e)
{
	unsigned n = 0;

	for (unsigned lane = 0; lane < e->e.lanes; lane++)
		n += post_receives_of(e, lane);
	return n > e->r.late[e->side] ? n - e->r.late[e->side] : 0;
}

/* What the other end's requests of this round ask of our words; it has counted all before. */
static void note_asked(struct end *e)
{
	memset(e->peer_asked, 0, sizeof e->peer_asked);
	for (unsigned i = 0; i < e->r.n; i++)
		if (e->r.r[i].common && e->r.r[i].from != e->side)
			e->peer_asked[e->r.r[i].word]++;
	e->peer_rounds = words_rounds(e->link, !e->side);
}

enum going { GOES_ON, WAS_LAST, BROKE_OFF };

static enum going play_round(struct end *e)
{
	struct board_link *b = &board->link[e->link];
	bool through;

	plan_round(&e->r, &e->e, e->seed, e->link, e->epoch, e->round);
	atomic_store(&b->round, e->round);
	end_does(e, "prepares a round");
	compare_prepare(e);
	end_bind(e);
	post_receives(e, early_receives(e));
	e->mine.last = atomic_load(&board->stop);
	end_does(e, "meets the other before it posts");
	if (!end_meet(e))
		return BROKE_OFF;
	e->begun = true;
	note_asked(e);
	end_does(e, "posts its requests");
	disturb_runs(e, true);
	post_requests(e);
	end_does(e, "waits for completions");
	disturb_polls(e, true);
	through = complete_all(e);
	disturb_polls(e, false);
	end_does(e, "meets the other after the round");
	through = through && end_meet(e);
	disturb_runs(e, false);
	if (!through)
		return BROKE_OFF;
	end_does(e, "compares");
	take_rest(e);
	compare_memory(e);
	words_commit(e);
	e->begun = false;
	atomic_fetch_add(&board->rounds, 1);
	return (e->side ? e->peer.last : e->mine.last) ? WAS_LAST : GOES_ON;
}

/* Both ends begin there. */
static void enter_life(struct end *e, uint32_t life)
{
	e->life = life;
	e->epoch = life * EPOCHS;
	board_enter(e->link, e->side, life);
}

static bool has_fault(const struct end *e)
{
	return e->e.fault && e->round == e->e.fault_round;
}

/* All of an epoch but its end, where both meet once more: the other may still be at it. */
static enum going play_rounds(struct end *e)
{
	enum going going = end_begin(e) ? GOES_ON : BROKE_OFF;

	for (e->round = 0; going == GOES_ON && e->round < e->e.rounds; e->round++) {
		going = play_round(e);
		if (going == GOES_ON && e->round + 1 < e->e.rounds &&
			(e->e.reconnects || has_fault(e)) && !end_reconnect(e))
			going = BROKE_OFF;
		if (going == BROKE_OFF)
			return going;
	}
	end_does(e, "meets the other at the end of the epoch");
	return going == BROKE_OFF || end_meet(e) ? going : BROKE_OFF;
}

/* False: it was the last one. */
static bool play_epoch(struct end *e)
{
	enum going going;

	atomic_store(&board->link[e->link].epoch, e->epoch);
	going = play_rounds(e);
	if (going == BROKE_OFF)
		broken_check(e);
	end_finish(e);
	e->epoch++;
	if (going == BROKE_OFF)
		enter_life(e, atomic_load(&board->link[e->link].dead));
	else
		atomic_fetch_add(&board->epochs, 1);
	return going != WAS_LAST;
}

struct ibv_context *link_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;

	if (!ctx)
		board_fail("no device could be opened: %m");
	ibv_free_device_list(list);
	return ctx;
}

void *link_main(void *arg)
{
	const struct link_part *p = arg;
	uint8_t stack[STACK_BYTES];
	struct end *e = calloc(1, sizeof *e);

	if (!e)
		board_fail("no memory");
	*e = (struct end){.link = p->link,
		.side = p->side,
		.peer_player = p->peer,
		.seed = p->seed,
		.stack = stack};
	e->ctx = link_device();
	enter_life(e, p->life);
	while (play_epoch(e))
		;
	atomic_store(&board->link[e->link].over, true);
	if (ibv_close_device(e->ctx))
		board_fail("ibv_close_device: %m");
	free(e);
	return NULL;
}
