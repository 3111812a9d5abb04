// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/pair.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/thread.h"
#include "cli/peercheck/crash.h"
#include "cli/peercheck/record.h"
#include "cli/peercheck/subject.h"
#include "cli/peercheck/watch.h"

/* A client without the shim may wait for what nobody tells: then the first one goes on anyway. */
enum { PATIENCE_MS = 50 };

static struct {
	struct pair what;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t first, second;
	bool started, blocked, done, let_go;
	unsigned points;
} pair = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void set(bool *flag)
{
	pthread_mutex_lock(&pair.lock);
	*flag = true;
	pthread_cond_broadcast(&pair.changed);
	pthread_mutex_unlock(&pair.lock);
}

static void *second(void *arg)
{
	crash_of_thread();
	pair.what.second(pair.what.arg);
	set(&pair.done);
	return arg;
}

static void start(void)
{
	pair.started = true;
	record_note("another thread begins");
	if (thread_start(&pair.second, NULL, THREAD_CALLBACKS, second, NULL))
		abort();
}

static void wait_for_second(void)
{
	struct timespec end;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_nsec += PATIENCE_MS * 1000000L;
	end.tv_sec += end.tv_nsec / 1000000000L;
	end.tv_nsec %= 1000000000L;
	pthread_mutex_lock(&pair.lock);
	while (!pair.done && !pair.blocked && !rc)
		rc = subject.kshim ? pthread_cond_wait(&pair.changed, &pair.lock)
				   : pthread_cond_timedwait(&pair.changed, &pair.lock, &end);
	pthread_mutex_unlock(&pair.lock);
}

static bool is_first(void)
{
	return pthread_equal(pthread_self(), pair.first);
}

void pair_settle(void)
{
	pthread_mutex_lock(&pair.lock);
	while (pair.started && !pair.what.hold && !pair.done)
		pthread_cond_wait(&pair.changed, &pair.lock);
	pthread_mutex_unlock(&pair.lock);
}

/* Before release nothing of the core's keeps the second thread: what it does then is in order. */
static void at_point(const char *name, bool after)
{
	if (is_first() && !after && strcmp(name, "release") == 0)
		pair_settle();
	if (!is_first() || ++pair.points != pair.what.at)
		return;
	record_note("the point: %s %s", after ? "after" : "before", name);
	start();
	wait_for_second();
}

static void at_callback(struct watched_region *r)
{
	(void)r;
	if (is_first())
		return;
	set(&pair.blocked);
	pthread_mutex_lock(&pair.lock);
	while (pair.what.hold && !pair.let_go)
		pthread_cond_wait(&pair.changed, &pair.lock);
	pthread_mutex_unlock(&pair.lock);
}

static void at_lock(void)
{
	set(is_first() ? &pair.let_go : &pair.blocked);
}

void pair_begin(const struct pair *p)
{
	static const struct watch_plan plan = {
		.point = at_point, .callback = at_callback, .waits = at_lock};

	pair.what = *p;
	pair.first = pthread_self();
	watch_plan(&plan);
}

bool pair_join(void)
{
	const bool came = pair.started;

	if (!came)
		start();
	set(&pair.let_go);
	pthread_join(pair.second, NULL);
	watch_plan(NULL);
	return came;
}

unsigned pair_points(void)
{
	return pair.points;
}
