// SPDX-License-Identifier: BSD-3-Clause
#include "link.h"

#include <stdlib.h>

#include "compare.h"
#include "disturb.h"
#include "post.h"
#include "tests/storm/world.h"

enum { PATIENCE_S = 40, STACK_BYTES = (768 << 10) + (80 << 10) };

static void lost(struct end *e)
{
	char first[160] = "";
	unsigned n = compare_missing(e, first, sizeof first);

	end_fail(e, "nothing has completed for %d s; %u completions are missing, the first %s",
		PATIENCE_S, n, first);
}

/* Polls until all of the round has completed here; posts late receives as it goes. */
static void complete_all(struct end *e)
{
	uint64_t since = now_ns();
	struct ibv_wc wc;
	unsigned idle = 0, missing = compare_missing(e, NULL, 0), left = post_receives(e, 0);
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
		end_rest(e, idle++);
		if (idle % 256 == 0 && now_ns() - since > PATIENCE_S * 1000000000ull)
			lost(e);
	}
	post_receives(e, UINT32_MAX);
}

/* The other end is through, too: nothing more may come but datagrams. */
static void take_rest(struct end *e)
{
	struct ibv_wc wc;
	bool is_send;

	while (end_poll(e, &wc, &is_send))
		compare_completion(e, &wc, is_send); /* says what is wrong with it */
	compare_arrived(e);
}

static unsigned early_receives(const struct end *e)
{
	unsigned n = 0;

	for (unsigned lane = 0; lane < e->e.lanes; lane++)
		n += post_receives_of(e, lane);
	return n > e->r.late[e->side] ? n - e->r.late[e->side] : 0;
}

/* False: it was the last one. */
static bool play_round(struct end *e)
{
	struct board_link *b = &board->link[e->link];

	plan_round(&e->r, &e->e, e->seed, e->link, e->epoch, e->round);
	atomic_store(&b->round, e->round);
	end_does(e, "prepares a round");
	compare_prepare(e);
	end_bind(e);
	post_receives(e, early_receives(e));
	e->mine.last = atomic_load(&board->stop);
	end_does(e, "meets the other before it posts");
	e->peer = board_meet(e->link, e->side, &e->mine);
	end_does(e, "posts its requests");
	post_requests(e);
	end_does(e, "waits for completions");
	disturb_polls(e, true);
	complete_all(e);
	disturb_polls(e, false);
	end_does(e, "meets the other after the round");
	board_meet(e->link, e->side, &e->mine);
	end_does(e, "compares");
	take_rest(e);
	compare_memory(e);
	atomic_fetch_add(&board->rounds, 1);
	return !(e->side ? e->peer.last : e->mine.last);
}

static bool is_broken(const struct end *e)
{
	return e->e.fault && e->round == e->e.fault_round;
}

static bool play_epoch(struct end *e)
{
	bool more = true;

	atomic_store(&board->link[e->link].epoch, e->epoch);
	end_begin(e);
	for (e->round = 0; more && e->round < e->e.rounds; e->round++) {
		more = play_round(e);
		if (more && e->round + 1 < e->e.rounds && (e->e.reconnects || is_broken(e)))
			end_reconnect(e);
	}
	end_finish(e);
	atomic_fetch_add(&board->epochs, 1);
	return more;
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
	while (play_epoch(e))
		e->epoch++;
	atomic_store(&board->link[e->link].over, true);
	if (ibv_close_device(e->ctx))
		board_fail("ibv_close_device: %m");
	free(e);
	return NULL;
}
