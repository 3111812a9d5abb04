// SPDX-License-Identifier: BSD-3-Clause
/* Completion queues: arming, and the events that come of it. */
#include "hca/queue/cq_arm.h"

#include <errno.h>

#include "base/clock.h"
#include "hca/api/hca.h"
#include "hca/exec/complete.h"
#include "hca/proc/proc.h"
#include "hca/proc/wake.h"
#include "hca/queue/channel.h"
#include "hca/queue/cq.h"
#include "hca/run/agent.h"
#include "hca/run/progress.h"
#include "hca/seg/arm.h"

static bool early_solicited(const struct ticket_run *early)
{
	for (uint32_t i = early->at; i < early->n; i++)
		if (early->t[i] & TICKET_SOLICITED)
			return true;
	return false;
}

/* Does a solicited or failed completion wait?  Each ticket is looked at once. */
static bool solicited_waits(struct hca_cq *cq)
{
	struct cq_marks *m = &cq->solicited;
	uint64_t head, t;
	bool waits;

	lock_take(&cq->lock);
	head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	if (m->looked < head)
		m->looked = head;
	while ((t = cq_peek(cq, m->looked))) {
		m->looked++;
		if (t & TICKET_SOLICITED)
			m->last = m->looked;
	}
	waits = m->last > head || early_solicited(&cq->early);
	lock_drop(&cq->lock);
	return waits;
}

/* May the event wait for more than what is there? */
static bool may_wait(struct exec *x, struct hca_cq *cq)
{
	uint64_t n;

	if (!atomic_load_explicit(&cq->s->moderation, memory_order_relaxed))
		return false;
	lock_take(&cq->lock);
	n = cq_waiting(cq);
	lock_drop(&cq->lock);
	return cq_may_wait(x, x->attach, cq->s, cq->index, (uint32_t)n);
}

void cq_event_taken(struct hca_cq *cq)
{
	uint64_t pos;
	bool one = cq_looks_single(cq, &pos);

	atomic_store_explicit(&cq->told_alone, one ? pos + 1 : 0, memory_order_relaxed);
}

/* Was what waits told by the event that the program took last?  Then it is about to poll that. */
static bool was_told(const struct hca_cq *cq)
{
	uint64_t pos;

	return cq_looks_single(cq, &pos) &&
	       atomic_load_explicit(&cq->told_alone, memory_order_relaxed) == pos + 1;
}

/*
 * An armed CQ fires for what was not polled, too, as adapters do it: a producer looks at the word
 * after its push, and the owner at the ring after it armed, so one of them sees the other.
 * Programs take an event, arm, and then poll once: no second event for that one completion.
 */
int hca_cq_arm(struct hca_cq *cq, bool solicited_only)
{
	struct exec *x;

	progress_before_sleep();
	agent_look();
	if (!cq->channel)
		return 0;
	atomic_store_explicit(&cq->armed, true, memory_order_relaxed);
	arm_set(&cq->s->arm, solicited_only);
	if (cq_looks_empty(cq) || was_told(cq) || (solicited_only && !solicited_waits(cq)))
		return 0;
	x = exec_get();
	if (x && !may_wait(x, cq))
		cq_fire(x, proc_seg(), x->attach, cq->index, true);
	exec_put(x);
	return 0;
}

void cq_fire_untold(struct hca_cq *cq)
{
	struct exec *x = exec_get();

	if (!x)
		return;
	if (atomic_load_explicit(&cq->s->fired, memory_order_acquire) != cq->fired_seen)
		x->fire(x->attach, cq->channel->id, NULL, x->arg);
	else if (!cq_looks_empty(cq))
		cq_fire(x, proc_seg(), x->attach, cq->index, false);
	exec_put(x);
}

/* ---- moderated events ---- */

static void fire_held(struct hca_cq *cq)
{
	struct exec *x = exec_get();

	atomic_store_explicit(&cq->s->due, 0, memory_order_relaxed);
	if (x && atomic_exchange_explicit(&cq->s->held, 0, memory_order_seq_cst))
		cq_fire(x, proc_seg(), x->attach, cq->index, true);
	exec_put(x);
}

bool cq_moderated(struct hca_cq *cq, bool always)
{
	uint64_t due = atomic_load_explicit(&cq->s->due, memory_order_relaxed);

	if (always || (due && clock_ns() >= due))
		fire_held(cq);
	return atomic_load_explicit(&cq->s->moderation, memory_order_relaxed);
}

int hca_cq_moderate(struct hca_cq *cq, uint16_t count, uint16_t period_us)
{
	if (cq->epoch != proc_epoch())
		return -EINVAL;
	/* One completion is what an event waits for anyway. */
	if (count == 1 && !period_us)
		count = 0;
	atomic_store_explicit(
		&cq->s->moderation, (uint32_t)count << 16 | period_us, memory_order_seq_cst);
	if (cq->channel)
		cq_moderated(cq, true);
	return 0;
}
