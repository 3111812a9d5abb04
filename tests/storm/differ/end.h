/* SPDX-License-Identifier: BSD-3-Clause */
/* One end of a link: its objects, and where its round is. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "board.h"
#include "memory.h"
#include "plan.h"

/* Bits of wr_id: of a receive; the rest is the round and the place in it. */
#define WR_RECV (1ull << 63)

enum {
	QKEY = 0x11223344,
	/* What the other end may do. */
	RIGHTS = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
};

/* What the model waits for in a lane. */
struct lane {
	struct ibv_qp *qp, *target; /* target: of XRC */
	/* By poster: index in the round of the next request that may complete, and message. */
	uint32_t next_send[POSTERS], next_recv[POSTERS];
	unsigned recvs_posted, recvs_done;
	/* After the other end's death. */
	bool failed, recv_failed;    /* of sends, of receives */
	uint32_t failed_at[POSTERS]; /* index in the round; UINT32_MAX: none */
	unsigned recvs_good;
};

struct end {
	unsigned link, side;
	uint64_t seed;
	void *stack;
	struct rnd rnd; /* for what the outcome does not depend on */
	struct ibv_context *ctx;

	uint32_t life; /* of the link (board.h) */
	unsigned epoch, round;
	bool begun;   /* both have come to the round: requests may be under way */
	bool wrecked; /* the other end is dead, and our queue pairs go to ERR */
	struct epoch e;
	struct round r;

	struct memory mem;
	uint8_t *shadow; /* what mem must hold */
	struct ibv_pd *pd;
	struct ibv_mr *mr, *own, *mute; /* for the other end, for ourselves, without rights */
	struct ibv_mw *mw;
	bool bound;
	uint64_t own_base; /* address of offset 0 under own */
	struct ibv_comp_channel *channel;
	struct ibv_cq *scq, *rcq;
	struct ibv_srq *srq;
	struct ibv_xrcd *xrcd;
	struct ibv_ah *ah;
	struct lane lane[LANES];
	_Atomic uint32_t posting; /* the slot of the receive that is being posted, + 1; 0: none */
	uint64_t got[REQUESTS / 64]; /* receives of the round that have completed with a message */
	struct note mine, peer;
	struct ibv_mr *words; /* the words of this process */
	unsigned peer_player;
	/* What the words of the other end's process were at least: ever, before the round, in it.
	 */
	struct word_tally counted[WORDS]; /* in this round */
	/* Of the last round: what the other end asked of our words, and its number there. */
	uint64_t peer_asked[WORDS], peer_rounds;
	uint32_t peer_life; /* that word_floor is of */
	uint64_t word_floor[WORDS], round_floor[WORDS], lane_floor[LANES][POSTERS][WORDS];
};

/*
 * Makes the objects of the epoch that e->epoch says, and connects them.  False, here and below: the
 * other end was killed.
 */
bool end_begin(struct end *e);
/* Comes to the next meeting (board.h), and has what the other end says in e->peer. */
bool end_meet(struct end *e);
/* Takes the objects down. */
void end_finish(struct end *e);
/* RESET, and connects anew; or destroys the queue pairs and makes others. */
bool end_reconnect(struct end *e);
/* Is the other end being killed, or dead: may errors come?  Is it dead, for sure? */
bool end_may_be_broken(const struct end *e);
bool end_is_broken(const struct end *e);
/* Takes all queue pairs to ERR. */
void end_wreck(struct end *e);
/* Binds the window for the round that comes, if there is one. */
void end_bind(struct end *e);
/* One completion or none, of either queue; false if there is none. */
bool end_poll(struct end *e, struct ibv_wc *wc, bool *is_send);
/* Waits a little for more. */
void end_rest(struct end *e, unsigned idle);

/* Notes what the end is at from here on, a literal, in case that it stands still there. */
void end_does(const struct end *e, const char *what);

/* Fails the test, and says where.  printf style. */
void end_fail(struct end *e, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));
