// SPDX-License-Identifier: BSD-3-Clause
/* Locks of clients, and what wakes their threads. */
#include <errno.h>
#include <linux/completion.h>
#include <linux/mutex.h>
#include <stdlib.h>

#include "base/log.h"
#include "kshim/hook.h"

KSHIM_EXPORT void kshim_mutex_init(struct mutex *lock)
{
	*lock = (struct mutex){PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP};
}

/* A kernel would hang here; who looks for the cause is better served by an end. */
static void locked_again(struct mutex *lock, const char *what)
{
	log_line(LOG_LVL_FATAL, "kernel shim: this thread takes %s, which it holds already", what);
	hook_lock(lock, what, KSHIM_LOCK_AGAIN);
	abort();
}

KSHIM_EXPORT void kshim_mutex_lock(struct mutex *lock, const char *what)
{
	int rc = pthread_mutex_trylock(&lock->m);

	if (rc) {
		hook_lock(lock, what, KSHIM_LOCK_WAITS);
		rc = pthread_mutex_lock(&lock->m);
	}
	if (rc == EDEADLK)
		locked_again(lock, what);
	hook_lock(lock, what, KSHIM_LOCK_TAKEN);
}

KSHIM_EXPORT int kshim_mutex_trylock(struct mutex *lock, const char *what)
{
	if (pthread_mutex_trylock(&lock->m))
		return 0;
	hook_lock(lock, what, KSHIM_LOCK_TAKEN);
	return 1;
}

KSHIM_EXPORT void kshim_mutex_unlock(struct mutex *lock)
{
	if (pthread_mutex_unlock(&lock->m))
		hook_wrong(KSHIM_STALE, "mutex_unlock of a lock that this thread does not hold");
	else
		hook_lock(lock, "", KSHIM_LOCK_DROPPED);
}

KSHIM_EXPORT void init_completion(struct completion *x)
{
	*x = (struct completion){0, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};
}

KSHIM_EXPORT void reinit_completion(struct completion *x)
{
	pthread_mutex_lock(&x->m);
	x->done = 0;
	pthread_mutex_unlock(&x->m);
}

static void add_done(struct completion *x, unsigned n)
{
	pthread_mutex_lock(&x->m);
	x->done += n;
	pthread_cond_broadcast(&x->c);
	pthread_mutex_unlock(&x->m);
}

enum { FOR_EVER = 1U << 30 };

KSHIM_EXPORT void complete(struct completion *x)
{
	add_done(x, 1);
}

KSHIM_EXPORT void complete_all(struct completion *x)
{
	add_done(x, FOR_EVER);
}

KSHIM_EXPORT void wait_for_completion(struct completion *x)
{
	pthread_mutex_lock(&x->m);
	while (!x->done)
		pthread_cond_wait(&x->c, &x->m);
	if (x->done < FOR_EVER)
		x->done--;
	pthread_mutex_unlock(&x->m);
}
