/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The executor: carries out the send queue of one end of a QP pair.  Any process that maps both
 * ends may run it; the token in the requester's QP lets one thread at a time.
 *
 * Commit order, so that a death at any instruction leaves a state from which the next holder can
 * go on: payload; the receive's done word; its ticket; rq_head; the request's done word; its
 * ticket; sq_head.  In the process of the receive the request comes before it (receive_ends_last(),
 * hca/exec/receive.h).
 */
#pragma once

#include "hca/exec/complete.h"

enum run_end {
	RUN_IDLE,   /* nothing left */
	RUN_KICKED, /* somebody else has the token and will look at the queue again */
	RUN_PARKED, /* the head waits for the peer, for a receive, or for its deadline */
	RUN_BUDGET, /* work is left: too large to do here, for a thread that may sleep, or enough
		     * was done */
	RUN_BUSY,   /* atomics held by somebody else, a region that changes over: try again soon */
};

struct budget {
	unsigned requests; /* to execute at most */
	uint64_t bytes;    /* to move at most, checked between requests */
	uint64_t large;    /* a request of at least so many bytes is left to the worker */
	bool one_sided;    /* a guess: nothing that is queued takes a receive (hca/seg/slot.h) */
};

/*
 * Executes req's send queue against resp (NULL: the peer was not found) until it is empty,
 * parked, or the budget is used up.  Never waits for anybody.
 */
enum run_end exec_run(
	struct exec *x, const struct end *req, const struct end *resp, struct budget b);

/* For the guess in struct budget, off the hot path: is the request at the head one-sided? */
bool exec_one_sided(const struct end *req);

/* Is weftd new, so that it may know only some of those who are there? */
bool exec_weftd_is_young(const struct exec *x);

/*
 * For weftd, which executes nothing: fails the head of req's queue if its deadline has passed, or
 * leaves that to whoever holds the token.  True if somebody wanted work done meanwhile: then the
 * owner must be woken to do it.
 */
bool exec_expire(struct exec *x, const struct end *req);

/*
 * For weftd: the peer of req is dead.  If work is queued, gives it the time an HCA would wait
 * for an acknowledgement, and asks for a timer.
 */
void exec_peer_died(struct exec *x, const struct end *req);
