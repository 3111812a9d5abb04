/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The executor where the memory is under the power-failure simulator: what is written there is
 * noted first, and so are the READs and FLUSHes that may make it durable.  All that changes one
 * process's memory is done under its atomic token, so that the order of the records is that of the
 * writes.  Who does not keep that process's journal is refused what he would have to note
 * (MOVE_REFUSED); his READs and FLUSHes go on, and make nothing durable.
 */
#pragma once

#include "hca/exec/carry.h"

/* Does w's responder keep a journal?  By a word that every request reads. */
static inline bool exec_crash_on(const struct work *w)
{
	return __builtin_expect(w->resp->qp->access & QPA_JOURNALED, 0);
}

/* The slow halves of what follows. */
bool exec_crash_is_covered(const struct payload *dst, const struct held *held);
enum move_result exec_crash_write(
	struct work *w, struct payload *src, struct payload *dst, const struct held *held);
void exec_crash_note_push(struct work *w);

/* Is some of dst, memory of w's responder under the regions held from dst->held_at on, noted? */
static inline bool exec_crash_covers(
	const struct work *w, const struct payload *dst, const struct held *held)
{
	return exec_crash_on(w) && exec_crash_is_covered(dst, held);
}

/* carry() from w's requester to dst, and a record of it if it must be. */
static inline enum move_result exec_crash_carry(
	struct work *w, struct payload *src, struct payload *dst, const struct held *held)
{
	if (exec_crash_covers(w, dst, held))
		return exec_crash_write(w, src, dst, held);
	return carry(w, src, w->req, dst, w->mem, held);
}

/* w's atomic on target, which is noted; *before: the old value. */
enum move_result exec_crash_atomic(
	struct work *w, struct payload *target, const struct held *held, uint64_t *before);

/* w, a READ or FLUSH, was carried out. */
static inline void exec_crash_push(struct work *w)
{
	if (exec_crash_on(w))
		exec_crash_note_push(w);
}
