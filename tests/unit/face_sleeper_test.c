// SPDX-License-Identifier: BSD-3-Clause
/* The eventfds of threads that sleep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "face/sleeper.h"

static bool readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void *take_fd(void *out)
{
	*(int *)out = sleeper_fd();
	assert_int_equal(sleeper_fd(), *(int *)out); /* the same again */
	return NULL;
}

/* That of another thread, which ends. */
static int other_fd(void)
{
	pthread_t thread;
	int fd = -1;

	assert_int_equal(pthread_create(&thread, NULL, take_fd, &fd), 0);
	pthread_join(thread, NULL);
	return fd;
}

static void each_thread_has_one(void **state)
{
	int fd = other_fd(), own;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), -1); /* it ended with its thread */
	own = sleeper_fd();
	assert_true(own >= 0);
	assert_int_equal(fcntl(own, F_GETFD), FD_CLOEXEC);
	assert_int_not_equal(other_fd(), own);
}

/* A program that closes all that it does not know closes ours, too. */
static void closed_behind_our_back(void **state)
{
	int own = sleeper_fd(), p[2];

	(void)state;
	close(own);
	assert_int_equal(pipe(p), 0);
	assert_int_equal(dup2(p[0], own), own);
	assert_true(sleeper_fd() >= 0);
	assert_int_not_equal(sleeper_fd(), own);
	assert_int_equal(fcntl(own, F_GETFL) & O_ACCMODE, O_RDONLY); /* the program's, untouched */
	close(own);
	close(p[0]);
	close(p[1]);
}

static void all_but_this_thread_are_woken(void **state)
{
	struct sleeper a = {.fd = sleeper_fd()}, b = {.fd = -1}, c = {0}, d = {0};
	struct sleeper *list = NULL;
	int gone;

	(void)state;
	c.fd = fcntl(
		a.fd, F_DUPFD_CLOEXEC, 0); /* what it wakes is this thread, by another number */
	d.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	sleeper_enter(&list, &a);
	sleeper_enter(&list, &b);
	sleepers_wake(list);
	assert_false(readable(a.fd));
	sleeper_enter(&list, &c);
	sleeper_enter(&list, &d);
	sleepers_wake(list);
	assert_true(readable(a.fd));
	sleeper_drain(a.fd);
	assert_false(readable(a.fd));
	sleeper_leave(&c); /* from the middle, the end, the beginning */
	sleeper_leave(&a);
	assert_ptr_equal(list, &d);
	assert_ptr_equal(d.next, &b);
	assert_null(b.next);
	sleepers_wake(list);
	assert_false(readable(a.fd));
	gone = d.fd;
	sleeper_leave(&d);
	sleeper_leave(&b);
	assert_null(list);
	sleepers_wake(list);
	sleeper_drain(-1);
	close(gone);
	close(c.fd);
}

/* What a child writes to its own wakes nobody here. */
static void a_child_has_its_own(void **state)
{
	int own = sleeper_fd(), status;
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		struct sleeper me = {.fd = sleeper_fd()};

		/* a single thread needs none, and what it inherited is closed */
		if (me.fd < 0)
			_exit(fcntl(own, F_GETFD) >= 0);
		sleepers_wake(&me);
		_exit(write(me.fd, &(uint64_t){1}, sizeof(uint64_t)) != sizeof(uint64_t));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_false(readable(own));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_thread_has_one),
		cmocka_unit_test(closed_behind_our_back),
		cmocka_unit_test(all_but_this_thread_are_woken),
		cmocka_unit_test(a_child_has_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
