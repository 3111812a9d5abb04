// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/announce.h"

#include "base/clock.h"
#include "hca/seg/arm.h"

/*
 * The ring is full: the CQ is lost, as on an HCA; its owner hears of it once.  False: the program
 * wants it to go on without this completion.
 */
static bool overrun(struct exec *x, const struct view *v, const struct cq_ref *cq)
{
	uint32_t bit = 1u << IBV_EVENT_CQ_ERR;

	count_add(x, CTR_CQ_OVERRUN, 1);
	if (cq->cq->ignores_overrun)
		return false;
	atomic_store_explicit(&cq->cq->failed, 1, memory_order_release);
	if (atomic_fetch_or_explicit(&cq->cq->events, bit, memory_order_seq_cst) & bit)
		return true;
	atomic_fetch_or_explicit(&v->seg->cq_event_map[cq->index / 64], 1ull << cq->index % 64,
		memory_order_seq_cst);
	x->fire(v->attach, 0, NULL, x->arg);
	return true;
}

/* The event of a moderated CQ is due now, and the next one begins to wait anew. */
static void end_wait(struct seg_cq *cq)
{
	atomic_store_explicit(&cq->held, 0, memory_order_relaxed);
	atomic_store_explicit(&cq->due, 0, memory_order_relaxed);
}

bool cq_may_wait(struct exec *x, uint32_t attach, struct seg_cq *cq, uint32_t index, uint32_t more)
{
	uint32_t m = atomic_load_explicit(&cq->moderation, memory_order_relaxed);
	uint32_t count = m >> 16, period = m & 0xffff, n;
	uint64_t due;

	if (!m)
		return false;
	n = atomic_fetch_add_explicit(&cq->held, more, memory_order_relaxed) + more;
	due = atomic_load_explicit(&cq->due, memory_order_relaxed);
	if ((count && n >= count) || (due && clock_ns() >= due)) {
		end_wait(cq);
		return false;
	}
	if (n > more || !period)
		return true;
	due = clock_ns() + (uint64_t)period * NSEC_PER_USEC;
	atomic_store_explicit(&cq->due, due, memory_order_seq_cst);
	if (x->timer(attach, SEG_TIMER_CQ | index, due, x->arg))
		return true;
	end_wait(cq);
	return false;
}

bool cq_fire(struct exec *x, struct seg *seg, uint32_t attach, uint32_t index, bool solicited)
{
	struct seg_cq *cq = &seg->cq[index];
	uint32_t firing = arm_must_fire(&cq->arm, solicited);
	struct fired_note note = {.cq = index, .fired = &cq->fired};

	if (!firing)
		return false;
	note.order = seg_fired(seg, cq->channel);
	if (x->fire(attach, cq->channel, &note, x->arg))
		atomic_fetch_add_explicit(&cq->told, 1, memory_order_release);
	arm_fired(&cq->arm, firing);
	return true;
}

/* It is armed for such a completion. */
static __attribute__((noinline)) void notify(
	struct exec *x, const struct view *v, const struct cq_ref *cq, bool solicited)
{
	const struct late_event e = {.seg = v->seg,
		.attach = v->attach,
		.index = cq->index,
		.arm = atomic_load_explicit(&cq->cq->arm, memory_order_relaxed),
		.solicited = solicited};

	if (cq_may_wait(x, v->attach, cq->cq, cq->index, 1))
		return;
	if (x->late && v->attach != x->attach)
		*x->late = e;
	else
		complete_late(x, &e);
}

void complete_late(struct exec *x, const struct late_event *late)
{
	uint32_t arm = atomic_load_explicit(&late->seg->cq[late->index].arm, memory_order_relaxed);

	if (!((arm ^ late->arm) & ~ARM_STATE_MASK) &&
		cq_fire(x, late->seg, late->attach, late->index, late->solicited))
		count_add(x, CTR_EVENTS, 1);
}

bool announce_ticket(struct exec *x, const struct view *v, const struct cq_ref *cq, uint64_t ticket,
	bool solicited)
{
	uint64_t marked = ticket | (solicited ? TICKET_SOLICITED : 0);
	uint32_t surplus = atomic_load_explicit(&cq->cq->surplus, memory_order_relaxed);
	struct cq_ref now;

	if (surplus > CQ_SURPLUS_MAX)
		surplus = CQ_SURPLUS_MAX;
	if (atomic_load_explicit(&cq->cq->resizes, memory_order_acquire) != cq->resizes) {
		if (cq_ref_init(&now, v, cq->index))
			return false; /* its owner scribbled over its CQ */
		cq = &now;
	}
	if (!ticket_push(cq->ring, cq->slots, cq->log_size, cq->limit + surplus, marked))
		return !overrun(x, v, cq);
	if (arm_wants(&cq->cq->arm, solicited))
		notify(x, v, cq, solicited);
	return true;
}
