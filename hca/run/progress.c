// SPDX-License-Identifier: BSD-3-Clause
/*
 * What waits for time: requests parked with a deadline.  weftd watches deadlines for programs
 * that sleep; a program that polls or sleeps in our calls watches its own, so that nothing hangs
 * while weftd is down.
 */
#include "hca/run/progress.h"

#include <errno.h>

#include "base/clock.h"
#include "hca/proc/parts.h"
#include "hca/proc/proc.h"
#include "hca/proc/tables.h"
#include "hca/run/far.h"

_Atomic uint32_t progress_parked;

static struct {
	struct lock lock;
	struct hca_qp *first;
	_Atomic uint64_t next_ns;
} parked;

enum { WEFTD_LOOK_MS = 10, WEFTD_FAILED_MS = 5000 };

static _Atomic uint64_t weftd_look_ns; /* when to look after weftd again */

/* With the lock held.  watch_at points to what points to the QP; NULL: not on the list. */
static void drop(struct hca_qp *qp)
{
	if (!qp->watch_at)
		return;
	*qp->watch_at = qp->watch_next;
	if (qp->watch_next)
		qp->watch_next->watch_at = qp->watch_at;
	qp->watch_at = NULL;
	atomic_fetch_sub_explicit(&progress_parked, 1, memory_order_release);
}

void progress_watch(struct hca_qp *qp)
{
	lock_take(&parked.lock);
	if (!qp->watch_at) {
		qp->watch_next = parked.first;
		if (parked.first)
			parked.first->watch_at = &qp->watch_next;
		qp->watch_at = &parked.first;
		parked.first = qp;
		atomic_fetch_add_explicit(&progress_parked, 1, memory_order_release);
	}
	lock_drop(&parked.lock);
}

void progress_forget(struct hca_qp *qp)
{
	lock_take(&parked.lock);
	drop(qp);
	lock_drop(&parked.lock);
}

void progress_forked_child(void)
{
	parked.first = NULL;
	atomic_store_explicit(&progress_parked, 0, memory_order_relaxed);
	atomic_store_explicit(&parked.lock.word, 0, memory_order_relaxed);
}

static void look_at_all(uint64_t now)
{
	struct hca_qp *next;

	atomic_store_explicit(&parked.next_ns, now + NSEC_PER_MSEC, memory_order_relaxed);
	for (struct hca_qp *qp = parked.first; qp; qp = next) {
		next = qp->watch_next;
		if (!far_of(qp)->look(qp))
			drop(qp);
	}
}

void progress_weftd(void)
{
	uint64_t now = clock_coarse_ns();
	uint64_t due = atomic_load_explicit(&weftd_look_ns, memory_order_relaxed);
	int rc;

	if (now < due || !atomic_compare_exchange_strong_explicit(&weftd_look_ns, &due,
				 now + WEFTD_LOOK_MS * NSEC_PER_MSEC, memory_order_relaxed,
				 memory_order_relaxed))
		return;
	for (const struct proc_part *const *at = proc_parts; *at; at++)
		if ((*at)->look)
			(*at)->look();
	rc = rdv_check();
	if (rc && rc != -EAGAIN)
		atomic_store_explicit(&weftd_look_ns,
			now + WEFTD_FAILED_MS * (uint64_t)NSEC_PER_MSEC, memory_order_relaxed);
}

/* Are there requests, wherever they wait?  Its entry knows, even while the QP is in the making. */
static bool outstanding(const struct seg_qp *s)
{
	return atomic_load_explicit(&s->sq_head, memory_order_acquire) !=
	       atomic_load_explicit(&s->sq_tail, memory_order_acquire);
}

bool progress_stalled(void)
{
	struct exec *x = exec_get();
	uint32_t n = x ? atomic_load_explicit(&proc_seg()->hdr.qps_used, memory_order_acquire) : 0;
	bool any = false;

	for (uint32_t i = 0; i < n && i < SEG_QPS; i++) {
		const struct seg_qp *s = &proc_seg()->qp[i];
		struct hca_qp *qp;

		if (!(atomic_load_explicit(&s->state, memory_order_relaxed) & QPS_LIVE))
			continue;
		qp = table_enter_qp(x, i);
		if (qp && outstanding(s)) {
			progress_watch(qp);
			any = true;
		}
		slot_leave(x->slot);
	}
	exec_put(x);
	return any;
}

void progress_slow(void)
{
	uint64_t now;

	if (!progress_pending())
		return;
	now = clock_ns();
	if (now < atomic_load_explicit(&parked.next_ns, memory_order_relaxed) ||
		!lock_try(&parked.lock))
		return;
	look_at_all(now);
	lock_drop(&parked.lock);
}

void progress_before_sleep(void)
{
	progress_weftd();
	if (!progress_pending())
		return;
	lock_take(&parked.lock);
	look_at_all(clock_ns());
	lock_drop(&parked.lock);
}
