// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/spin.h"

enum { USUAL = 10000 };

/* The limit in a process that starts with that setting; what it logs goes to log. */
static uint64_t limit_with(const char *text, char *log, size_t size)
{
	uint64_t limit = 0;
	int out[2], err[2], status;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(out) | pipe(err), 0);
	pid = fork();
	if (pid == 0) {
		dup2(err[1], STDERR_FILENO);
		if (text)
			setenv("WEFT_SPIN_US", text, 1);
		limit = spin_limit_ns(USUAL);
		_exit(write(out[1], &limit, sizeof limit) != sizeof limit);
	}
	close(err[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(read(out[0], &limit, sizeof limit), sizeof limit);
	n = read(err[0], log, size - 1);
	log[n > 0 ? n : 0] = '\0';
	close(out[0]);
	close(out[1]);
	close(err[0]);
	return limit;
}

static void settings(void **state)
{
	static const struct {
		const char *text;
		uint64_t limit;
		int told;
	} cases[] = {{NULL, USUAL, 0}, {"", USUAL, 0}, {"0", 0, 0}, {"7", 7000, 0},
		{"1000000", 1000000000, 0}, {"1000001", USUAL, 1}, {"-1", USUAL, 1},
		{"5us", USUAL, 1}, {"fast", USUAL, 1}};
	bool alone = sysconf(_SC_NPROCESSORS_ONLN) < 2; /* nobody else can go on */
	char log[256];

	(void)state;
	unsetenv("WEFT_SPIN_US");
	unsetenv("WEFT_LOG");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(
			limit_with(cases[i].text, log, sizeof log), alone ? 0 : cases[i].limit);
		assert_int_equal(strstr(log, "WEFT_SPIN_US") != NULL, cases[i].told);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(settings)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
