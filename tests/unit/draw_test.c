// SPDX-License-Identifier: BSD-3-Clause
/* Drawn numbers: in range, not the same ones again, and a child's are not its parent's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/draw.h"

enum {
	PAGE = 4096,
	N = 600 /* more than are drawn at a time */
};

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* How many of those there are twice. */
static int repeated(uint32_t *all, size_t n)
{
	int same = 0;

	qsort(all, n, sizeof *all, by_size);
	for (size_t i = 1; i < n; i++)
		same += all[i] == all[i - 1];
	return same;
}

static void draw_all(uint32_t *to)
{
	for (int i = 0; i < N; i++)
		to[i] = draw_u32();
}

static void differ(void **state)
{
	uint32_t all[N];

	(void)state;
	errno = 7;
	draw_all(all);
	assert_int_equal(errno, 7);
	assert_true(repeated(all, N) < 3);
}

static void in_range(void **state)
{
	uint32_t seen = 0;

	(void)state;
	for (int i = 0; i < N; i++) {
		uint32_t n = draw_below(7);

		assert_true(n < 7);
		seen |= 1u << n;
	}
	assert_int_equal(seen, 0x7f);
	seen = 0;
	for (int i = 0; i < N; i++)
		seen |= draw_u8();
	assert_int_equal(seen, 0xff);
	assert_int_equal(draw_below(1), 0);
}

/* Also of a fork that runs no handlers. */
static void in_a_child(void **state)
{
	uint32_t all[2 * N];
	int pipe_fd[2], status;
	pid_t pid;

	(void)state;
	draw_u32();
	for (int raw = 0; raw < 2; raw++) {
		assert_int_equal(pipe(pipe_fd), 0);
		pid = raw ? _Fork() : fork();
		if (!pid) {
			draw_all(all);
			_exit(write(pipe_fd[1], all, N * sizeof *all) != N * sizeof *all);
		}
		draw_all(all);
		assert_int_equal(read(pipe_fd[0], all + N, N * sizeof *all), N * sizeof *all);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_true(repeated(all, sizeof all / sizeof *all) < 3);
		close(pipe_fd[0]);
		close(pipe_fd[1]);
	}
}

/* Emulators of a user's programs take the advice and do not heed it. */
static bool kernel_wipes(void)
{
	uint8_t *page =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status = 1;
	pid_t pid;

	if (page == MAP_FAILED || madvise(page, PAGE, MADV_WIPEONFORK))
		return false;
	*page = 1;
	pid = fork();
	if (!pid)
		_exit(*page);
	waitpid(pid, &status, 0);
	munmap(page, PAGE);
	return status == 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(differ), cmocka_unit_test(in_range)};
	const struct CMUnitTest wiped[] = {cmocka_unit_test(in_a_child)};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	if (kernel_wipes())
		return failed + cmocka_run_group_tests(wiped, NULL, NULL);
	printf("MADV_WIPEONFORK does nothing here: what a child draws was not compared\n");
	return failed ? failed : 77;
}
