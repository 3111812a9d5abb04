// SPDX-License-Identifier: BSD-3-Clause
/* One thread for all work; it starts with the first. */
#include <linux/workqueue.h>
#include <pthread.h>

#include "base/thread.h"
#include "kshim/hook.h"

enum { IDLE, WAITING };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct work_struct *first;
	struct work_struct *running; /* its function may have freed it: for comparison alone */
	bool started;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void run_first(void)
{
	struct work_struct *w = queue.first;

	queue.first = w->next;
	queue.running = w;
	w->state = IDLE;
	pthread_mutex_unlock(&queue.lock);
	w->func(w);
	pthread_mutex_lock(&queue.lock);
	queue.running = NULL;
	pthread_cond_broadcast(&queue.changed);
}

static void *work(void *arg)
{
	pthread_mutex_lock(&queue.lock);
	for (;;) {
		while (!queue.first)
			pthread_cond_wait(&queue.changed, &queue.lock);
		run_first();
	}
	return arg;
}

static void start(void)
{
	pthread_t thread;

	if (queue.started || thread_start(&thread, "kshim-work", THREAD_CALLBACKS, work, NULL))
		return;
	pthread_detach(thread);
	queue.started = true;
}

KSHIM_EXPORT bool schedule_work(struct work_struct *w)
{
	struct work_struct **at = &queue.first;
	bool added;

	pthread_mutex_lock(&queue.lock);
	start();
	added = w->state == IDLE;
	while (*at)
		at = &(*at)->next;
	if (added) {
		w->state = WAITING;
		w->next = NULL;
		*at = w;
		pthread_cond_broadcast(&queue.changed);
	}
	pthread_mutex_unlock(&queue.lock);
	return added;
}

static bool is_waiting(const struct work_struct *w)
{
	const struct work_struct *at = queue.first;

	while (at && w && at != w)
		at = at->next;
	return at;
}

static bool is_busy(const struct work_struct *w)
{
	return is_waiting(w) || (queue.running && (!w || queue.running == w));
}

KSHIM_EXPORT bool kshim_flush_work(struct work_struct *w)
{
	bool was;

	pthread_mutex_lock(&queue.lock);
	was = is_busy(w);
	while (is_busy(w))
		pthread_cond_wait(&queue.changed, &queue.lock);
	pthread_mutex_unlock(&queue.lock);
	return was;
}

KSHIM_EXPORT bool flush_work(struct work_struct *w)
{
	return kshim_flush_work(w);
}

KSHIM_EXPORT bool cancel_work_sync(struct work_struct *w)
{
	struct work_struct **at = &queue.first;
	bool was;

	pthread_mutex_lock(&queue.lock);
	while (*at && *at != w)
		at = &(*at)->next;
	was = *at;
	if (was) {
		*at = w->next;
		w->state = IDLE;
	}
	pthread_mutex_unlock(&queue.lock);
	return kshim_flush_work(w) || was;
}
