// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/forks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/peercheck/crash.h"
#include "cli/peercheck/keeper.h"
#include "cli/peercheck/record.h"
#include "cli/peercheck/watch.h"

static pid_t process;
static _Atomic unsigned inside;        /* functions of the client, now */
static _Atomic bool beside_each_other; /* ... or before, since there was none */

static const char *place(const char *in)
{
	return in ? in : "a thread of its own";
}

/* Before each fork(2), in the thread that does it. */
static void forks(void)
{
	const char *in = watch_function();

	if (getpid() != process)
		return; /* its child */
	if (crash_is_of_device(in))
		record_mine()->device_forks = true;
	else
		record_fork(place(in), "");
}

void forks_begin(void)
{
	process = getpid();
	prctl(PR_SET_CHILD_SUBREAPER, 1); /* what a child leaves is seen here, too */
	pthread_atfork(forks, NULL, NULL);
}

/* One that it has waited for: by system(3), with which fork handlers do not run. */
static bool had_child(void)
{
	struct rusage used;

	return !getrusage(RUSAGE_CHILDREN, &used) && used.ru_minflt > 0;
}

void forks_guard(const char *in)
{
	if (getpid() != process) {
		record_fork(place(in), ", and the child returns from there as well");
		_exit(0);
	}
	if (!in || record_mine()->device_forks)
		return;
	if (atomic_load_explicit(&beside_each_other, memory_order_relaxed))
		in = "one of several threads";
	if (keeper_has_children())
		record_fork(in, ", and the child is there after it");
	else if (had_child())
		record_fork(in, "");
}

void forks_enter(void)
{
	if (atomic_fetch_add_explicit(&inside, 1, memory_order_relaxed))
		atomic_store_explicit(&beside_each_other, true, memory_order_relaxed);
}

void forks_leave(const char *in)
{
	forks_guard(in);
	if (atomic_fetch_sub_explicit(&inside, 1, memory_order_relaxed) == 1)
		atomic_store_explicit(&beside_each_other, false, memory_order_relaxed);
}

void forks_judge_left(unsigned n)
{
	if (!record_mine()->device_forks)
		record_broken(22, "left", "it leaves %u processes that it has made", n);
}
