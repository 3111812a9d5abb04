// SPDX-License-Identifier: BSD-3-Clause
/* What weftd keeps of a topology in files. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/subnet_files.h"

static char dir[] = "/tmp/weft-subnet-files-XXXXXX";
static char topo[sizeof dir + 16];
static struct rdv_paths paths;

static int begin(void **state)
{
	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	if (!mkdtemp(dir) || setenv("WEFT_RUNTIME_DIR", dir, 1))
		return -1;
	snprintf(topo, sizeof topo, "%s/lab.topo", dir);
	return rdv_paths_open(&paths, "lab");
}

static int end(void **state)
{
	(void)state;
	rdv_paths_close(&paths);
	unlink(topo);
	return rmdir(dir);
}

static void put(const char *text)
{
	FILE *f = fopen(topo, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void assert_has(const char *text)
{
	FILE *f = fopen(topo, "r");
	char got[256] = "";

	assert_non_null(f);
	(void)!fread(got, 1, sizeof got - 1, f);
	fclose(f);
	assert_string_equal(got, text);
}

static int add_within(rlim_t bytes, const char *command)
{
	struct rlimit old, less;
	int ret;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	less = (struct rlimit){.rlim_cur = bytes, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
	ret = subnet_files_add(&paths, command);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	return ret;
}

/* Where there is room for a part of a line, nothing of it stays: a part would be refused. */
static void commands_are_whole(void **state)
{
	(void)state;
	put("# a\n");
	assert_int_equal(subnet_files_add(&paths, "Unlink \"a\""), 0);
	assert_has("# a\ndo Unlink \"a\"\n");
	for (rlim_t room = 0; room < 14; room++) {
		assert_int_equal(add_within(18 + room, "ReLink \"a\""), -EFBIG);
		assert_has("# a\ndo Unlink \"a\"\n");
	}
	assert_int_equal(add_within(18 + 14, "ReLink \"a\""), 0);
	assert_has("# a\ndo Unlink \"a\"\ndo ReLink \"a\"\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(commands_are_whole)};

	return cmocka_run_group_tests(tests, begin, end);
}
