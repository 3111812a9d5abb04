// SPDX-License-Identifier: BSD-3-Clause
#include "base/thread.h"

#include <errno.h>
#include <signal.h>

enum { STACK = 256 * 1024 };

static int start_small(pthread_t *thread, void *(*main)(void *), void *arg)
{
	pthread_attr_t attr;
	int rc;

	pthread_attr_init(&attr);
	rc = pthread_attr_setstacksize(&attr, STACK);
	if (!rc)
		rc = pthread_create(thread, &attr, main, arg);
	pthread_attr_destroy(&attr);
	return rc;
}

int thread_start(pthread_t *thread, const char *name, enum thread_stack stack,
	void *(*main)(void *), void *arg)
{
	sigset_t all, old;
	int rc = EINVAL;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (stack == THREAD_SMALL)
		rc = start_small(thread, main, arg);
	if (rc == EINVAL) /* thread-local data need more */
		rc = pthread_create(thread, NULL, main, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!rc && name)
		pthread_setname_np(*thread, name);
	return rc;
}
