/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The executor where the kernel refuses cma: the responder's memory is reached through the agent
 * of its process, by a thread of the requester that may sleep (struct exec.may_wait: a lane, see
 * hca/run/worker.h).  Nobody reaches a requester's memory so: who helps it hands the work back.
 */
#pragma once

#include "hca/exec/resolve.h"
#include "hca/exec/work.h"
#include "pages/agent.h"

/* The agent's area in seg, NULL while there is none or what stands there makes no sense. */
struct agent_area *agent_area(struct seg *seg);

/*
 * Runs m, whose remote list is memory of w's responder, by its agent; the pieces were resolved as
 * held->mr[first] and on.  MOVE_LATER: this thread may not, or the memory is the requester's.
 * Meanwhile the exec slot names us alone: only our own memory and the agent's area are touched,
 * so that a responder takes memory away without waiting for us, even if we are stopped.
 */
enum move_result exec_agent_move(
	struct work *w, struct move *m, const struct held *held, unsigned first);

/* The same for w's atomic at va of the responder, allowed by w->rkey; *before: the old value. */
enum move_result exec_agent_atomic(
	struct work *w, struct move *m, const struct held *held, uint64_t *before);

/* The same for w's persistent flush of range, which w->rkey allows and is one piece. */
enum move_result exec_agent_persist(struct work *w, struct payload *range, const struct held *held);

/* True if the requester itself must execute w, in a thread that may sleep. */
bool exec_agent_later(const struct work *w);

/* Leaves w, and what is left of this queue pair's work from now on, to its lane: MOVE_LATER. */
enum move_result exec_agent_lane(const struct work *w);

/*
 * cma to v's process was refused (MOVE_REFUSED) although both ends had allowed it.  True: from now
 * on its agent is asked, which it was told to start.
 */
bool exec_agent_refused(const struct view *v);

/*
 * Asks the agent of req's process to see to it that req's queue is run.  False: it has none,
 * or one that ends and has looked for the last time.  Never blocks.
 */
bool exec_agent_hand_back(const struct end *req);

/*
 * Asks the agent of resp's process, to whose memory a request goes that only it can carry out, to
 * run that request's queue.  The caller has let go of the token.  False: no agent will.  Never
 * blocks.
 */
bool exec_agent_hand_over(const struct end *resp);
