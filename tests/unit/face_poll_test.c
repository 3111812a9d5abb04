// SPDX-License-Identifier: BSD-3-Clause
/* poll(2) of fds some of which are a face's; the face here is a few words under a lock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "face/poll_many.h"

enum { FIRST = 10000, THINGS = 50 }; /* fds that are ours, which the kernel does not know */

static const int64_t LONG_NS = 20 * (int64_t)NSEC_PER_SEC;

struct thing {
	struct lock lock;
	int is; /* its conditions */
	int on; /* an fd that it is slept for on, 0: none */
	int refs;
	struct sleeper *sleepers;
	_Atomic unsigned slept; /* times that somebody began to */
};

static struct thing things[THINGS];

static void *find(int fd)
{
	if (fd < FIRST || fd >= FIRST + THINGS)
		return NULL;
	things[fd - FIRST].refs++;
	return &things[fd - FIRST];
}

static void put(void *ours)
{
	((struct thing *)ours)->refs--;
}

static int look(void *ours, const struct pollfd *asked)
{
	struct thing *t = ours;
	int is;

	(void)asked;
	lock_take(&t->lock);
	is = t->is;
	lock_drop(&t->lock);
	return is;
}

static int before(
	void *ours, const struct pollfd *asked, struct sleeper *me, struct pollfd on[POLL_ON])
{
	struct thing *t = ours;
	int is;

	(void)asked;
	lock_take(&t->lock);
	is = t->is;
	if (is != POLL_NOT_OURS) {
		sleeper_enter(&t->sleepers, me);
		if (t->on)
			on[1] = (struct pollfd){.fd = t->on, .events = POLLIN};
	}
	atomic_fetch_add(&t->slept, 1);
	lock_drop(&t->lock);
	return is;
}

static int after(
	void *ours, const struct pollfd *asked, struct sleeper *me, const struct pollfd on[POLL_ON])
{
	struct thing *t = ours;
	int is;

	(void)asked;
	lock_take(&t->lock);
	sleeper_leave(me);
	if (t->on && (on[1].revents & POLLIN))
		t->is |= POLLIN;
	is = t->is;
	lock_drop(&t->lock);
	return is;
}

static const struct poll_face face = {
	.find = find,
	.put = put,
	.look = look,
	.before = before,
	.after = after,
	.look_ns = 10 * NSEC_PER_USEC,
	.nap_ns = 5 * NSEC_PER_MSEC,
};

static int clear(void **state)
{
	(void)state;
	for (int i = 0; i < THINGS; i++)
		things[i] = (struct thing){0};
	return 0;
}

/* Nobody is left in a list, and every reference was given back. */
static int let_go(void **state)
{
	(void)state;
	for (int i = 0; i < THINGS; i++)
		if (things[i].refs || things[i].sleepers)
			return -1;
	return 0;
}

static struct pollfd ours(int i, short events)
{
	return (struct pollfd){.fd = FIRST + i, .events = events, .revents = 0x7777};
}

static struct pollfd real(int fd, short events)
{
	return (struct pollfd){.fd = fd, .events = events, .revents = 0x7777};
}

static void only_the_kernels(void **state)
{
	struct pollfd fds[2];
	int p[2];

	(void)state;
	assert_int_equal(pipe(p), 0);
	fds[0] = real(p[0], POLLIN);
	fds[1] = real(p[1], POLLOUT);
	assert_int_equal(poll_many(&face, fds, 2, -1), 1);
	assert_int_equal(fds[0].revents, 0);
	assert_int_equal(fds[1].revents, POLLOUT);
	assert_int_equal(poll_many(&face, fds, 1, NSEC_PER_MSEC), 0);
	close(p[0]);
	close(p[1]);
	assert_int_equal(poll_many(&face, NULL, 0, 0), 0);
}

/* Who is ready hides nobody, and nobody is told what was not asked for. */
static void all_that_are_ready(void **state)
{
	struct pollfd fds[5];
	int p[2];

	(void)state;
	assert_int_equal(pipe(p), 0);
	things[0].is = POLLIN | POLLOUT;
	things[1].is = POLLHUP;
	fds[0] = ours(0, POLLIN);
	fds[1] = real(p[1], POLLOUT);
	fds[2] = ours(1, 0);
	fds[3] = ours(2, POLLIN);
	fds[4] = real(-1, POLLIN);
	for (int64_t ns = -1; ns < 2; ns++) {
		assert_int_equal(poll_many(&face, fds, 5, ns), 3);
		assert_int_equal(fds[0].revents, POLLIN);
		assert_int_equal(fds[1].revents, POLLOUT);
		assert_int_equal(fds[2].revents, POLLHUP);
		assert_int_equal(fds[3].revents, 0);
		assert_int_equal(fds[4].revents, 0);
	}
	close(p[0]);
	close(p[1]);
}

static void nothing_in_time(void **state)
{
	uint64_t start = clock_ns();
	struct pollfd fds[1] = {ours(0, POLLIN)};

	(void)state;
	assert_int_equal(poll_many(&face, fds, 1, 0), 0);
	assert_int_equal(poll_many(&face, fds, 1, 20 * NSEC_PER_MSEC), 0);
	assert_int_equal(fds[0].revents, 0);
	assert_true(clock_ns() - start >= 20 * NSEC_PER_MSEC);
}

/* Changes a thing once somebody sleeps for it; wake: and says so. */
static void *change(void *wake)
{
	struct thing *t = &things[0];

	while (!atomic_load(&t->slept))
		sched_yield();
	lock_take(&t->lock);
	t->is = POLLIN;
	if (wake)
		sleepers_wake(t->sleepers);
	lock_drop(&t->lock);
	return NULL;
}

static void sleepers_are_woken(void **state)
{
	struct poll_face patient = face;
	struct pollfd fds[2] = {ours(1, POLLIN), ours(0, POLLIN)};
	uint64_t start = clock_ns();
	pthread_t thread;

	(void)state;
	patient.nap_ns = LONG_NS;
	assert_int_equal(pthread_create(&thread, NULL, change, &things), 0);
	assert_int_equal(poll_many(&patient, fds, 2, 2 * LONG_NS), 1);
	assert_int_equal(fds[1].revents, POLLIN);
	assert_true(clock_ns() - start < (uint64_t)LONG_NS);
	pthread_join(thread, NULL);
}

static void naps_end(void **state)
{
	struct pollfd fds[1] = {ours(0, POLLIN)};
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, change, NULL), 0);
	assert_int_equal(poll_many(&face, fds, 1, LONG_NS), 1);
	assert_int_equal(fds[0].revents, POLLIN);
	pthread_join(thread, NULL);
}

/* What a thing is slept for on wakes, and is told to the thing. */
static void woken_by_its_fd(void **state)
{
	struct poll_face patient = face;
	struct pollfd fds[2] = {ours(1, POLLIN), ours(0, POLLIN)};
	int p[2];

	(void)state;
	patient.nap_ns = LONG_NS;
	assert_int_equal(pipe(p), 0);
	things[0].on = p[0];
	assert_int_equal(write(p[1], "", 1), 1);
	assert_int_equal(poll_many(&patient, fds, 2, -1), 1);
	assert_int_equal(fds[1].revents, POLLIN);
	close(p[0]);
	close(p[1]);
}

/* An fd that was ours when the call began. */
static void given_to_the_kernel(void **state)
{
	struct pollfd fds[2] = {ours(0, POLLIN), ours(1, POLLIN)};

	(void)state;
	things[0].is = POLL_NOT_OURS;
	assert_int_equal(poll_many(&face, fds, 2, -1), 1);
	assert_int_equal(fds[0].revents, POLLNVAL); /* the kernel has none of that number */
	assert_int_equal(fds[1].revents, 0);
}

/* More than have room on the stack, and as many as a process may have. */
static void many(void **state)
{
	struct pollfd fds[3 * THINGS];
	struct rlimit few = {sizeof fds / sizeof *fds, sizeof fds / sizeof *fds};
	int status;
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		for (int i = 0; i < 3 * THINGS; i++)
			fds[i] = i < THINGS ? ours(i, POLLIN) : real(-1, POLLIN);
		things[THINGS - 1].on = STDIN_FILENO;
		setrlimit(RLIMIT_NOFILE, &few);
		if (poll_many(&face, fds, 3 * THINGS, NSEC_PER_MSEC) < 0)
			_exit(1);
		things[7].is = POLLIN;
		_exit(poll_many(&face, fds, 3 * THINGS, -1) != 1 || fds[7].revents != POLLIN);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_the_kernels, clear, let_go),
		cmocka_unit_test_setup_teardown(all_that_are_ready, clear, let_go),
		cmocka_unit_test_setup_teardown(nothing_in_time, clear, let_go),
		cmocka_unit_test_setup_teardown(sleepers_are_woken, clear, let_go),
		cmocka_unit_test_setup_teardown(naps_end, clear, let_go),
		cmocka_unit_test_setup_teardown(woken_by_its_fd, clear, let_go),
		cmocka_unit_test_setup_teardown(given_to_the_kernel, clear, let_go),
		cmocka_unit_test_setup_teardown(many, clear, let_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
