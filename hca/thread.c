// SPDX-License-Identifier: BSD-3-Clause
#include "hca/thread.h"

#include <errno.h>
#include <signal.h>

enum { STACK = 256 * 1024 };

int thread_start(pthread_t *thread, void *(*main)(void *), void *arg)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	rc = pthread_attr_setstacksize(&attr, STACK);
	if (!rc)
		rc = pthread_create(thread, &attr, main, arg);
	pthread_attr_destroy(&attr);
	if (rc == EINVAL) /* thread-local data need more */
		rc = pthread_create(thread, NULL, main, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}
