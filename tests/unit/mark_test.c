// SPDX-License-Identifier: BSD-3-Clause
/* Which fds are umad or issm files, as the path shim keeps it; and the names of their sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/mark.h"

enum { NUMBER = 12 };

/* The program's end of a file; weftd's is *other. */
static int make(enum file_kind kind, int *other)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(file_name_set(ends[0], kind, NUMBER), 0);
	*other = ends[1];
	return ends[0];
}

static void end(int fd, int other)
{
	close(fd);
	close(other);
}

static void names(void **state)
{
	int other, fd = make(FILE_UMAD, &other), ends[2];
	unsigned number;

	(void)state;
	assert_int_equal(file_name_kind(fd), FILE_UMAD);
	assert_int_equal(file_name_kind(other), FILE_OTHER);
	assert_int_equal(file_name_look(fd, &number), FILE_UMAD);
	assert_int_equal(number, NUMBER);
	assert_int_equal(file_name_set(fd, FILE_ISSM, 0), -EINVAL);
	assert_int_equal(file_name_set(other, FILE_OTHER, 0), -EINVAL);
	assert_int_equal(file_name_set(other, FILE_UVERBS, 0), -EINVAL);
	assert_int_equal(file_name_set(other, FILE_ISSM, 0), 0);
	assert_int_equal(file_name_look(other, &number), FILE_ISSM);
	assert_int_equal(number, 0);
	assert_int_equal(pipe(ends), 0);
	errno = EPERM;
	assert_int_equal(file_name_kind(ends[1] + 1), FILE_OTHER);
	assert_int_equal(file_name_kind(ends[0]), FILE_OTHER);
	assert_int_equal(errno, EPERM);
	end(ends[0], ends[1]);
	end(fd, other);
}

static void come_and_go(void **state)
{
	int other, fd = make(FILE_ISSM, &other), copy = dup(fd);
	uint8_t mark;

	(void)state;
	assert_false(marked(fd));
	mark_arrived(fd);
	mark_arrived(other);
	assert_true(marked(fd));
	assert_false(marked(other));
	assert_int_equal(mark_kind(mark_of(fd)), FILE_ISSM);
	assert_int_equal(mark_access(mark_of(fd)), O_RDWR);
	assert_true(mark_set(fd, FILE_ISSM, O_WRONLY | O_NONBLOCK));
	assert_int_equal(mark_access(mark_of(fd)), O_WRONLY);
	mark_copy(fd, copy);
	assert_int_equal(mark_kind(mark_of(copy)), FILE_ISSM);
	assert_int_equal(mark_access(mark_of(copy)), O_WRONLY);
	mark_copy(other, copy);
	assert_true(marked(copy));
	mark = mark_of(fd);
	mark_stale(fd, mark);
	assert_false(marked(fd));
	mark_stale(copy, mark_of(copy));
	end(copy, -1);
	end(fd, other);
}

/* Who looked before the number got another file does not take that file's mark away. */
static void looked_too_early(void **state)
{
	int fd = 7;
	uint8_t mark;

	(void)state;
	mark_set(fd, FILE_UMAD, O_RDWR);
	mark = mark_of(fd);
	mark_set(fd, FILE_UMAD, O_RDWR);
	mark_stale(fd, mark);
	assert_true(marked(fd));
	mark_stale(fd, mark_of(fd));
	assert_false(marked(fd));
}

/* The child of a vfork() has other fds and the same memory. */
static void other_process(void **state)
{
	int fd = 7, status;
	pid_t pid;

	(void)state;
	mark_set(fd, FILE_UMAD, O_RDWR);
	pid = vfork();
	if (!pid) {
		mark_stale(fd, mark_of(fd));
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(marked(fd));
	mark_stale(fd, mark_of(fd));
}

static void numbers(void **state)
{
	(void)state;
	assert_false(marked(-1));
	assert_false(marked(MARKS));
	assert_false(mark_set(MARKS, FILE_UMAD, O_RDWR));
	assert_false(mark_set(-1, FILE_UMAD, O_RDWR));
	mark_set(7, FILE_UMAD, O_RDWR);
	mark_copy(7, MARKS);
	mark_copy(7, -1);
	mark_copy(-1, 8);
	assert_false(marked(8));
	assert_true(mark_set(MARKS - 1, FILE_ISSM, O_RDONLY));
	assert_true(marked(MARKS - 1));
	mark_stale(7, mark_of(7));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(come_and_go),
		cmocka_unit_test(looked_too_early),
		cmocka_unit_test(other_process),
		cmocka_unit_test(numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
