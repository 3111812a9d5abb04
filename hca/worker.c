// SPDX-License-Identifier: BSD-3-Clause
#include "hca/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "hca/exec.h"
#include "hca/objects.h"
#include "hca/proc.h"

enum { BUSY_NAP_NS = 200 * 1000 };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more, done;
	struct hca_qp *first;
	struct hca_qp *running;
	bool started;
} worker = {.lock = PTHREAD_MUTEX_INITIALIZER,
	.more = PTHREAD_COND_INITIALIZER,
	.done = PTHREAD_COND_INITIALIZER};

static const struct budget whole_budget = {
	.requests = UINT32_MAX, .bytes = UINT64_MAX, .large = UINT64_MAX};

static enum run_end run(struct exec *x, struct hca_qp *qp, unsigned direction)
{
	struct end *peer = atomic_load_explicit(&qp->peer, memory_order_acquire);

	if (direction == WORK_OUT)
		return exec_run(x, &qp->me, peer, whole_budget);
	return peer ? exec_run(x, peer, &qp->me, whole_budget) : RUN_IDLE;
}

/* The word that holds up atomics of that direction may be held by a process that died. */
static void free_atomics(struct hca_qp *qp, unsigned direction)
{
	struct end *peer = atomic_load_explicit(&qp->peer, memory_order_acquire);
	struct end *target = direction == WORK_OUT ? peer : &qp->me;

	if (target)
		peer_free_token(&target->view.seg->hdr.atomic_token);
}

/* Runs what was queued for qp; what stays busy is returned, to be queued again. */
static unsigned serve(struct exec *x, struct hca_qp *qp)
{
	unsigned todo = atomic_exchange_explicit(&qp->queued, 0, memory_order_acq_rel);
	unsigned busy = 0;

	for (unsigned dir = WORK_OUT; dir <= WORK_IN; dir++)
		if (todo & dir && run(x, qp, dir) == RUN_BUSY) {
			free_atomics(qp, dir);
			busy |= dir;
		}
	count_add(x, CTR_WORKER, 1);
	return busy;
}

static void enqueue(struct hca_qp *qp, unsigned direction)
{
	struct hca_qp **at = &worker.first;

	if (atomic_fetch_or_explicit(&qp->queued, direction, memory_order_acq_rel))
		return;
	/* At the end, so that one that stays busy starves nobody. */
	while (*at)
		at = &(*at)->work_next;
	qp->work_next = NULL;
	*at = qp;
}

static void serve_one(struct exec *x)
{
	const struct timespec nap = {.tv_nsec = BUSY_NAP_NS};
	struct hca_qp *qp = worker.first;
	unsigned busy;

	worker.first = qp->work_next;
	worker.running = qp;
	pthread_mutex_unlock(&worker.lock);
	busy = serve(x, qp);
	if (busy)
		nanosleep(&nap, NULL);
	pthread_mutex_lock(&worker.lock);
	worker.running = NULL;
	if (busy)
		enqueue(qp, busy);
	pthread_cond_broadcast(&worker.done);
}

static void *worker_main(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&worker.lock);
	for (;;) {
		struct exec *x;

		while (!worker.first)
			pthread_cond_wait(&worker.more, &worker.lock);
		x = exec_self();
		if (x) {
			serve_one(x);
			continue;
		}
		pthread_mutex_unlock(&worker.lock);
		nanosleep(&(struct timespec){.tv_nsec = NSEC_PER_MSEC}, NULL);
		pthread_mutex_lock(&worker.lock);
	}
	return NULL;
}

/* With the lock held.  The thread takes no signals: those are the program's. */
static void start(void)
{
	sigset_t all, old;
	pthread_t thread;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&thread, NULL, worker_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc) {
		log_line(LOG_LVL_ERROR, "cannot start the worker thread: large messages wait");
		return;
	}
	pthread_detach(thread);
	worker.started = true;
}

void worker_add(struct hca_qp *qp, unsigned direction)
{
	pthread_mutex_lock(&worker.lock);
	enqueue(qp, direction);
	if (!worker.started)
		start();
	pthread_cond_signal(&worker.more);
	pthread_mutex_unlock(&worker.lock);
}

void worker_forget(struct hca_qp *qp)
{
	pthread_mutex_lock(&worker.lock);
	for (;;) {
		for (struct hca_qp **at = &worker.first; *at; at = &(*at)->work_next)
			if (*at == qp) {
				*at = qp->work_next;
				break;
			}
		atomic_store_explicit(&qp->queued, 0, memory_order_release);
		if (worker.running != qp)
			break;
		pthread_cond_wait(&worker.done, &worker.lock);
	}
	pthread_mutex_unlock(&worker.lock);
}

void worker_forked_child(void)
{
	pthread_mutex_init(&worker.lock, NULL);
	pthread_cond_init(&worker.more, NULL);
	pthread_cond_init(&worker.done, NULL);
	worker.first = worker.running = NULL;
	worker.started = false;
}
