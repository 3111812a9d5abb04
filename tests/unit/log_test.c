// SPDX-License-Identifier: BSD-3-Clause
/* The log: where its lines go, and where they must not go.  Each case in a process of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

enum { OTHER = 65534 };

static char log_path[] = "/tmp/weft-log-XXXXXX";
static char err_path[] = "/tmp/weft-log-XXXXXX";

/* Runs the case with WEFT_LOG=spec and stderr in a file; its wait status. */
static int run(const char *spec, void (*act)(void))
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		setenv("WEFT_LOG", spec, 1);
		close(STDERR_FILENO);
		if (open(err_path, O_WRONLY | O_TRUNC | O_APPEND) != STDERR_FILENO)
			_exit(1);
		act();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static const char *contents(const char *path)
{
	static char text[4096];
	FILE *f = fopen(path, "re");

	assert_non_null(f);
	text[fread(text, 1, sizeof text - 1, f)] = '\0';
	fclose(f);
	return text;
}

static int lines(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void two_lines(void)
{
	log_line(LOG_LVL_ERROR, "first");
	log_line(LOG_LVL_ERROR, "second");
}

static void close_and_open(void)
{
	log_line(LOG_LVL_ERROR, "before");
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	for (int fd = 3; fd < 600;) { /* whatever number the log had is the program's now */
		fd = open(err_path, O_WRONLY | O_APPEND);
		if (fd < 0)
			_exit(1);
	}
	log_line(LOG_LVL_ERROR, "after");
}

static void low_is_free(void)
{
	log_line(LOG_LVL_ERROR, "open");
	_exit(dup(0) == 3 ? 0 : 1);
}

static void broken_pipe(void)
{
	int p[2];

	if (pipe(p) || dup2(p[1], STDERR_FILENO) < 0 || close(p[0]))
		_exit(1);
	log_line(LOG_LVL_ERROR, "lost");
}

static void bad_level(void **state)
{
	(void)state;
	assert_int_equal(run("loud", two_lines), 0);
	assert_non_null(strstr(contents(err_path), "no level 'loud'"));
	assert_int_equal(lines(contents(err_path)), 3);
}

static void a_fatal_line(void)
{
	log_set_level(LOG_LVL_FATAL);
	log_line(LOG_LVL_ERROR, "an error");
	log_line(LOG_LVL_FATAL, "the end");
}

/* A program's choice, not one of WEFT_LOG. */
static void fatal_always(void **state)
{
	(void)state;
	assert_int_equal(run("debug", a_fatal_line), 0);
	assert_int_equal(lines(contents(err_path)), 1);
	assert_non_null(strstr(contents(err_path), "]: fatal: the end\n"));
	assert_int_equal(run("fatal", two_lines), 0);
	assert_non_null(strstr(contents(err_path), "no level 'fatal'"));
}

static void bad_file(void **state)
{
	(void)state;
	assert_int_equal(run("debug:/nonexistent/x", two_lines), 0);
	assert_non_null(strstr(contents(err_path), "cannot open '/nonexistent/x'"));
	assert_int_equal(lines(contents(err_path)), 3);
}

static void not_into_files_of_the_program(void **state)
{
	char spec[64];

	(void)state;
	snprintf(spec, sizeof spec, "info:%s", log_path);
	assert_int_equal(run(spec, low_is_free), 0);
	assert_int_equal(run(spec, close_and_open), 0);
	assert_int_equal(lines(contents(err_path)), 0);
	assert_int_equal(lines(contents(log_path)), 2);
}

static void say_value(void)
{
	log_line(LOG_LVL_ERROR, "bad name '%s'", "x\nweft[1]: error: \x1b[2J\xc3\xa9\xff");
}

static void one_line_whatever_the_value(void **state)
{
	(void)state;
	assert_int_equal(run("info", say_value), 0);
	assert_int_equal(lines(contents(err_path)), 1);
	assert_non_null(strstr(
		contents(err_path), "bad name 'x\\x0aweft[1]: error: \\x1b[2J\xc3\xa9\\xff'\n"));
}

/* A link of another user may lead to a file that only we can write to. */
static void links_of_others(void **state)
{
	char dir[] = "/tmp/weft-log-XXXXXX", spec[64], *link = spec + strlen("info:");

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(spec, sizeof spec, "info:%s/link", dir);
	assert_int_equal(symlink(log_path, link), 0);
	truncate(log_path, 0);
	assert_int_equal(run(spec, two_lines), 0);
	assert_int_equal(lines(contents(log_path)), 2);
	if (geteuid() == 0) {
		assert_int_equal(lchown(link, OTHER, OTHER), 0);
		assert_int_equal(run(spec, two_lines), 0);
		assert_int_equal(lines(contents(log_path)), 2);
		assert_int_equal(lines(contents(err_path)), 3);
	}
	unlink(link);
	rmdir(dir);
}

static void no_sigpipe(void **state)
{
	(void)state;
	assert_int_equal(run("info", broken_pipe), 0);
}

static void refusals(void)
{
	for (int i = 0; i < 3; i++) {
		errno = ENXIO;
		log_refusal("call %d refused", i);
		if (errno != ENXIO)
			_exit(1);
	}
	if (log_busy("call", "it is in use") != -EBUSY)
		_exit(1);
}

/* To be asked whether it would be written is as good. */
static void asks(void)
{
	if (log_refusals() || log_refusals())
		_exit(1);
	refusals();
}

static void silent(void)
{
	log_set_level(LOG_LVL_WARN);
	refusals();
}

/* Who has not set WEFT_LOG is told of it once. */
static void first_refusal(void **state)
{
	(void)state;
	assert_int_equal(run("", refusals), 0);
	assert_int_equal(lines(contents(err_path)), 1);
	assert_non_null(strstr(contents(err_path), "]: warn: something was refused, or failed; "
						   "WEFT_LOG=info says what, and why\n"));
	assert_int_equal(run("", asks), 0);
	assert_int_equal(lines(contents(err_path)), 1);
	assert_int_equal(run("", silent), 0);
	assert_int_equal(lines(contents(err_path)), 0);
	assert_int_equal(run("warn", refusals), 0);
	assert_int_equal(lines(contents(err_path)), 0);
	assert_int_equal(run("info", refusals), 0);
	assert_int_equal(lines(contents(err_path)), 4);
	assert_non_null(strstr(contents(err_path), "]: info: call 2 refused\n"));
	assert_non_null(strstr(contents(err_path), "]: info: call refused: it is in use\n"));
}

static int setup(void **state)
{
	(void)state;
	for (int fd = 3; fd < 1024; fd++) /* what the test runner left open */
		close(fd);
	signal(SIGPIPE, SIG_DFL);
	close(mkstemp(log_path));
	return close(mkstemp(err_path));
}

static int teardown(void **state)
{
	(void)state;
	return unlink(log_path) | unlink(err_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(bad_level),
		cmocka_unit_test(fatal_always), cmocka_unit_test(bad_file),
		cmocka_unit_test(not_into_files_of_the_program), cmocka_unit_test(no_sigpipe),
		cmocka_unit_test(one_line_whatever_the_value), cmocka_unit_test(links_of_others),
		cmocka_unit_test(first_refusal)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
