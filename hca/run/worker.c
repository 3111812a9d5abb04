// SPDX-License-Identifier: BSD-3-Clause
#include "hca/run/worker.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "hca/proc/proc.h"
#include "hca/run/far.h"
#include "hca/run/progress.h"

enum { BUSY_NAP_NS = 200 * 1000, WATCH_NS = 100 * NSEC_PER_MSEC };

static struct worker common = {.lock = PTHREAD_MUTEX_INITIALIZER,
	.more = PTHREAD_COND_INITIALIZER,
	.done = PTHREAD_COND_INITIALIZER};

/* Whose turn qp is. */
static struct worker *worker_of(struct hca_qp *qp)
{
	struct worker *lane = far_lane(qp, true);

	return lane ? lane : &common;
}

static void *worker_main(void *arg);

/* With the lock held. */
static void start(struct worker *w)
{
	w->started = !thread_start(&w->thread, "weft-worker", THREAD_SMALL, worker_main, w);
	if (w->started && w == &common)
		pthread_detach(w->thread); /* it runs until the process ends */
	if (!w->started)
		log_line(LOG_LVL_ERROR, "cannot start the worker thread: large messages wait");
}

/* A worker has left something parked: the common one looks at it now and then. */
static void watch(void)
{
	pthread_mutex_lock(&common.lock);
	if (!common.started)
		start(&common);
	pthread_cond_signal(&common.more);
	pthread_mutex_unlock(&common.lock);
}

/* Runs what was queued for qp; what stays is returned, to be queued again.  *busy: not at once. */
static unsigned serve(struct exec *x, struct hca_qp *qp, bool *busy)
{
	unsigned todo = atomic_exchange_explicit(&qp->queued, 0, memory_order_acq_rel);
	unsigned left = 0;

	*busy = false;
	for (unsigned dir = WORK_OUT; dir <= WORK_IN; dir++) {
		enum run_end end = todo & dir ? far_of(qp)->work(x, qp, dir) : RUN_IDLE;

		*busy |= end == RUN_BUSY;
		if (end == RUN_BUSY || end == RUN_BUDGET)
			left |= dir;
	}
	count_add(x, CTR_WORKER, 1);
	if (progress_pending())
		watch();
	return left;
}

/* With w's lock held.  False: it was there already. */
static bool enqueue(struct worker *w, struct hca_qp *qp, unsigned direction)
{
	struct hca_qp **at = &w->first;

	if (atomic_fetch_or_explicit(&qp->queued, direction, memory_order_acq_rel))
		return false;
	/* At the end, so that one that stays busy starves nobody. */
	while (*at)
		at = &(*at)->work_next;
	qp->work_next = NULL;
	*at = qp;
	w->n++;
	return true;
}

/* from: the worker that has just served qp, or NULL. */
static void add(struct hca_qp *qp, unsigned direction, const struct worker *from)
{
	struct worker *w = worker_of(qp);

	pthread_mutex_lock(&w->lock);
	if (enqueue(w, qp, direction) && w != from)
		w->busy = 0;
	if (!w->started)
		start(w);
	if (w != from)
		pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&w->lock);
}

static void serve_one(struct worker *w, struct exec *x)
{
	struct hca_qp *qp = w->first;
	unsigned left;
	bool busy;

	w->first = qp->work_next;
	w->n--;
	w->running = qp;
	pthread_mutex_unlock(&w->lock);
	x->may_wait = w != &common;
	x->is_worker = true;
	left = serve(x, qp, &busy);
	/* Perhaps to another worker, and before worker_forget() takes us for done with it. */
	if (left)
		add(qp, left, w);
	pthread_mutex_lock(&w->lock);
	w->busy = busy ? w->busy + 1 : 0;
	w->running = NULL;
	pthread_cond_broadcast(&w->done);
}

/* With w's lock held; lets go of it until there is more work, or the time is over: false. */
static bool wait_within(struct worker *w, uint64_t ns)
{
	uint64_t at = clock_ns() + ns;
	const struct timespec until = {
		.tv_sec = (time_t)(at / NSEC_PER_SEC), .tv_nsec = (long)(at % NSEC_PER_SEC)};

	return pthread_cond_clockwait(&w->more, &w->lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT;
}

/*
 * The common worker also looks after what waits for time: the program may have gone to sleep before
 * a worker parked its request, and weftd may be down.
 */
static void wait_for_work(struct worker *w)
{
	if (w != &common || !progress_pending()) {
		pthread_cond_wait(&w->more, &w->lock);
		return;
	}
	if (wait_within(w, WATCH_NS))
		return;
	pthread_mutex_unlock(&w->lock);
	progress_slow();
	pthread_mutex_lock(&w->lock);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	pthread_mutex_lock(&w->lock);
	while (!w->stop) {
		struct exec *x;

		if (!w->first) {
			wait_for_work(w);
			continue;
		}
		/* All that are queued were busy when they were last looked at. */
		if (w->busy >= w->n) {
			wait_within(w, BUSY_NAP_NS);
			w->busy = 0;
			continue;
		}
		pthread_mutex_unlock(&w->lock);
		/* What nobody else can do goes on; a lane, which may wait for a peer, does not. */
		x = w == &common ? exec_get() : exec_self();
		if (!x)
			nanosleep(&(struct timespec){.tv_nsec = NSEC_PER_MSEC}, NULL);
		pthread_mutex_lock(&w->lock);
		if (x && w->first)
			serve_one(w, x);
		exec_put(x);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

void worker_init(struct worker *w)
{
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->more, NULL);
	pthread_cond_init(&w->done, NULL);
	w->first = w->running = NULL;
	w->n = w->busy = 0;
	w->started = w->stop = false;
}

void worker_end(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&w->lock);
	if (w->started)
		pthread_join(w->thread, NULL);
	w->started = false;
}

void worker_add(struct hca_qp *qp, unsigned direction)
{
	add(qp, direction, NULL);
}

static void forget(struct worker *w, struct hca_qp *qp)
{
	pthread_mutex_lock(&w->lock);
	for (;;) {
		for (struct hca_qp **at = &w->first; *at; at = &(*at)->work_next)
			if (*at == qp) {
				*at = qp->work_next;
				w->n--;
				break;
			}
		if (w->running != qp)
			break;
		pthread_cond_wait(&w->done, &w->lock);
	}
	pthread_mutex_unlock(&w->lock);
}

void worker_forget(struct hca_qp *qp)
{
	struct worker *lane = far_lane(qp, false);

	/* In this order: work moves from the first to the second, and not back. */
	forget(&common, qp);
	if (lane)
		forget(lane, qp);
	atomic_store_explicit(&qp->queued, 0, memory_order_release);
}

void worker_forked_child(void)
{
	worker_init(&common);
}
