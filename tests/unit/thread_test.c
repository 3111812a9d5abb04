// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread.h"

/* struct sched_attr of the kernel. */
struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

enum { LONG_NS = 5000000, SHORTEST_NS = 100000, NICE = 3 };

static struct attr attr_of_self(void)
{
	struct attr a = {.size = sizeof a};

	assert_int_equal(syscall(SYS_sched_getattr, 0, &a, sizeof a, 0), 0);
	return a;
}

static void a_brief_thread_has_the_shortest_slice(void **state)
{
	struct attr a = {.size = sizeof a, .policy = SCHED_OTHER, .nice = NICE, .runtime = LONG_NS};

	(void)state;
	if (syscall(SYS_sched_setattr, 0, &a, 0) || attr_of_self().runtime != LONG_NS)
		skip(); /* this kernel gives all the same */
	errno = 0;
	thread_runs_briefly();
	assert_int_equal(errno, 0);
	a = attr_of_self();
	assert_int_equal(a.runtime, SHORTEST_NS);
	assert_int_equal(a.policy, SCHED_OTHER);
	assert_int_equal(a.nice, NICE);
}

static void a_thread_of_another_policy_keeps_it(void **state)
{
	const struct sched_param none = {0};

	(void)state;
	assert_int_equal(sched_setscheduler(0, SCHED_BATCH, &none), 0);
	thread_runs_briefly();
	assert_int_equal(attr_of_self().policy, SCHED_BATCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_brief_thread_has_the_shortest_slice),
		cmocka_unit_test(a_thread_of_another_policy_keeps_it)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
