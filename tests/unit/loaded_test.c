// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <sys/auxv.h>

#include "base/loaded.h"

/* Of libc's package, and empty: nothing needs it any more. */
static const char late[] = "libutil.so.1";

static void test_what_is_needed(void **state)
{
	(void)state;
	assert_true(loaded_has("libc.so.6"));
	assert_false(loaded_has("libc.so"));
	assert_false(loaded_has("libc.so.6.1"));
	assert_false(loaded_has("libnone.so.1"));
}

static void test_the_kernels_own(void **state)
{
	(void)state;
	/* An emulator of a kernel may have none. */
	assert_int_equal(loaded_has("linux-vdso.so.1"), getauxval(AT_SYSINFO_EHDR) != 0);
}

static void test_loaded_later(void **state)
{
	void *library;

	(void)state;
	assert_false(loaded_has(late));
	library = dlopen(late, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(library);
	assert_true(loaded_has(late));
	assert_int_equal(dlclose(library), 0);
	assert_false(loaded_has(late));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_needed),
		cmocka_unit_test(test_the_kernels_own),
		cmocka_unit_test(test_loaded_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
