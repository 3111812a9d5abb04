/* SPDX-License-Identifier: BSD-3-Clause */
/* Moving the bytes of a work request, by the way that leads there (hca/exec/way.h). */
#pragma once

#include "hca/exec/way.h"

/* From so many bytes on it is worth a second store to promise in the exec slot how they go. */
enum { CARRY_PROMISE_MIN = 64 * 1024 };

/*
 * May len bytes of w, which reaches memory of others through their arenas alone, go at once, the
 * exec slot being as it is?
 */
static inline bool carry_in_one_step(const struct work *w, uint64_t len)
{
	return len < CARRY_PROMISE_MIN || (len <= MOVE_STEP && w->way == SLOT_WAYS_MAPPED);
}

/* Is e's memory that of this process? */
static inline bool end_is_here(const struct end *e)
{
	return e->view.pid == 0;
}

/*
 * Lets those who take memory away go on, if they wait for us: ends a step of the run.  What was
 * checked must be checked again.
 */
void work_step(struct work *w);

/*
 * The request uses more than mapped memory: says so in the exec slot.  Before anything of it was
 * checked, else as work_step().
 */
static inline void work_any_way(struct work *w)
{
	if (__builtin_expect(w->way == SLOT_WAYS_ANY, 1))
		return;
	w->way = SLOT_WAYS_ANY;
	work_step(w);
}

/* Are both ends still in states in which a transfer goes on? */
bool work_connected(const struct work *w);

/*
 * To be asked before a process is named by its pid: true if it was alive at most 100 ms ago.  In
 * less time no pid comes round again.
 */
bool work_pid_valid(struct work *w, const struct view *v);

/*
 * Moves all of src to dst; each list is consumed.  Between the steps of a long move, w's exec slot
 * moves, and regions and QPs are looked at again: MOVE_TAKEN, or MOVE_ANEW if a region is changing
 * over.  MOVE_REFUSED also if neither is reached by loads and stores.
 */
enum move_result carry(
	struct work *w, struct payload *src, struct payload *dst, const struct held *held);

/* The same for the rows of ways: within the process, through memory that is mapped, by calls. */
enum move_result carry_here(
	struct work *w, struct payload *src, struct payload *dst, const struct held *held);
enum move_result carry_shared(
	struct work *w, struct payload *src, struct payload *dst, const struct held *held);
enum move_result carry_cma(
	struct work *w, struct payload *src, struct payload *dst, const struct held *held);
enum move_result carry_agent(
	struct work *w, struct payload *src, struct payload *dst, const struct held *held);

/*
 * Between what io reaches, bytes of this process, and far, in another one's memory, by that one's
 * agent; push: to it.  As carry_agent(), which has a list in the place of io.
 */
enum move_result carry_agent_io(struct work *w, const struct sgl_io *io, struct payload *far,
	bool push, const struct held *held);

/*
 * Memory of another process is about to be reached by a system call: the exec slot says so, and
 * the regions were looked at again since: MOVE_TAKEN or MOVE_ANEW.
 */
enum move_result carry_by_call(struct work *w, const struct held *held);

/*
 * Memory of another process was used through its arena: MOVE_TAKEN if it may have gone before
 * that was done, so that nobody will see it.
 */
enum move_result carry_arrived(const struct work *w, const struct held *held);

/*
 * Between two steps, when the exec slot has moved: may the request go on?  MOVE_OK, MOVE_TAKEN, or
 * MOVE_ANEW as a region is changing over.  A request that fills a receive of a shared queue goes on
 * then: its slot has not moved, or names none of the memory.
 */
enum move_result carry_goes_on(const struct work *w, const struct held *held);

/*
 * Is the process whose mapped memory is to be used alive?  The memory of a dead one takes bytes as
 * before; it is asked for each tick of the coarse clock, some ms, and weftd tells sooner.
 */
bool carry_alive(struct work *w, const struct view *v);
