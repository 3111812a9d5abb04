/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agent mover: where the kernel refuses cma, a thread of the peer copies between its memory
 * and a bounce buffer in its segment, and we between that and ours.  This is the requester's side;
 * the thread is hca/run/agent.c.
 */
#pragma once

#include "pages/agent_slot.h"
#include "pages/mover.h"

/* What a transfer by an agent needs to know beyond struct move. */
struct agent_call {
	uint64_t owner; /* who asks, for the slot's word */
	uint32_t qp;    /* index of the responder's QP */
	enum agent_op op;
	const uint32_t *key; /* of each piece of move.remote */
	uint64_t operand[2]; /* of an atomic */
	uint64_t before;     /* out: what it found */
	struct agent_bell *bell;
	uint64_t
		patience_ns; /* MOVE_LATE if the agent does nothing for so long; UINT64_MAX never */
	/* The area, NULL while that process has none (yet). */
	struct agent_area *(*area)(void *arg);
	/* Is the process dead? */
	bool (*gone)(void *arg);
	/* Past the patience, with an agent: does it only want a CPU?  It is given 5 s in all, a
	 * flush that it has begun 10 s for each step. */
	bool (*slow)(void *arg);
	/* Before each sleep: lets those go on who take memory away.  move.may_go_on ends it. */
	void (*rest)(void *arg);
	void *arg;
};

/*
 * Carries out m by m->agent.  Sleeps, in pieces after each of which m->may_go_on (not NULL) is
 * asked.  After MOVE_ANEW the agent does nothing of it any more, and
 * has not carried out an atomic; what it is at is waited for first, and an atomic ends well.  An
 * atomic has 8 bytes in m->remote and moves nothing in m->local.
 */
enum move_result agent_run(struct move *m);

/* How long waiting for another process may spin before it sleeps; 0 with one CPU. */
uint64_t agent_spin_ns(void);
