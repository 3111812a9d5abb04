// SPDX-License-Identifier: BSD-3-Clause
/* The socket that is the program's fd: what poll(2) sees on it, and what it tells us. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "face/standin.h"

struct pair {
	struct standin s;
	int fd;
};

static short shows(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN | POLLOUT};

	return poll(&p, 1, 0) > 0 ? p.revents : 0;
}

static int begin(void **state)
{
	static struct pair p;

	p.s = (struct standin){.sock = -1};
	*state = &p;
	return standin_open(&p.s, &p.fd);
}

static int end(void **state)
{
	struct pair *p = *state;

	standin_close(&p->s);
	standin_close(&p->s); /* harmless */
	close(p->fd);
	return p->s.sock != -1;
}

static void shows_what_is_said(void **state)
{
	struct pair *p = *state;

	assert_int_equal(shows(p->fd), 0);
	for (int i = 0; i < 3; i++) {
		standin_mark(&p->s);
		standin_mark(&p->s); /* once is enough */
		assert_int_equal(shows(p->fd), POLLIN);
		standin_unfill(&p->s);
		assert_int_equal(shows(p->fd), POLLIN | POLLOUT);
		standin_unmark(&p->s, p->fd);
		assert_int_equal(shows(p->fd), POLLOUT);
		standin_fill(&p->s, p->fd);
		assert_int_equal(shows(p->fd), 0);
	}
}

/* What the program put in its place is not read, nor written to. */
static void another_fd_is_left_alone(void **state)
{
	struct pair *p = *state;
	int other[2];

	assert_int_equal(pipe(other), 0);
	assert_int_equal(write(other[1], "x", 1), 1);
	standin_mark(&p->s);
	standin_unfill(&p->s);
	standin_unmark(&p->s, other[0]);
	standin_fill(&p->s, other[1]);
	assert_int_equal(shows(other[0]), POLLIN);
	assert_int_equal(shows(p->fd), POLLIN | POLLOUT);
	standin_unmark(&p->s, p->fd); /* it was not forgotten that it was */
	assert_int_equal(shows(p->fd), POLLOUT);
	close(other[0]);
	close(other[1]);
}

static void only_the_last_close_counts(void **state)
{
	struct pair *p = *state;
	int again = dup(p->fd), status;
	pid_t pid = fork();

	if (!pid)
		_exit(0); /* a child had all, too */
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_false(standin_closed(&p->s));
	close(p->fd);
	assert_false(standin_closed(&p->s));
	close(again);
	assert_true(standin_closed(&p->s));
	p->fd = -1;
}

static void hung_up_for_ever(void **state)
{
	struct pair *p = *state;

	standin_hang_up(&p->s);
	assert_int_equal(shows(p->fd) & (POLLIN | POLLHUP), POLLIN | POLLHUP);
	standin_unmark(&p->s, p->fd);
	standin_fill(&p->s, p->fd);
	assert_int_equal(shows(p->fd) & (POLLIN | POLLHUP), POLLIN | POLLHUP);
	assert_false(standin_closed(&p->s));
	close(p->fd);
	assert_true(standin_closed(&p->s));
	p->fd = -1;
}

static void undone(void **state)
{
	struct pair *p = *state;

	close(p->fd);
	standin_undo(&p->s);
	assert_int_equal(p->s.sock, -1);
	assert_false(standin_closed(&p->s));
	assert_int_equal(standin_open(&p->s, &p->fd), 0);
	assert_int_equal(shows(p->fd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(shows_what_is_said, begin, end),
		cmocka_unit_test_setup_teardown(another_fd_is_left_alone, begin, end),
		cmocka_unit_test_setup_teardown(only_the_last_close_counts, begin, end),
		cmocka_unit_test_setup_teardown(hung_up_for_ever, begin, end),
		cmocka_unit_test_setup_teardown(undone, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
