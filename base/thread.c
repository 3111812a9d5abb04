// SPDX-License-Identifier: BSD-3-Clause
#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STACK = 256 * 1024, SLICE_NS = 100000 /* the shortest */ };

/* struct sched_attr of linux/sched/types.h, which glibc's headers before 2.41 do not go with. */
struct slice_attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

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

void thread_runs_briefly(void)
{
	struct slice_attr a = {.size = sizeof a, .policy = SCHED_OTHER, .runtime = SLICE_NS};
	int saved = errno;

	/* whatever the program's own threads have been given stays */
	if (sched_getscheduler(0) == SCHED_OTHER) {
		a.nice = getpriority(PRIO_PROCESS, 0);
		syscall(SYS_sched_setattr, 0, &a, 0);
	}
	errno = saved;
}
