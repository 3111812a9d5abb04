// SPDX-License-Identifier: BSD-3-Clause
/* How often a thread looks for packets before it sleeps, by what came of it before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hca/obj/lookout.h"

/* How often it sleeps at once until it looks again. */
static unsigned sleeps(struct lookout *l)
{
	unsigned n = 0;

	while (!lookout_begins(l))
		n++;
	return n;
}

static void one_that_sees_looks_each_time(void **state)
{
	struct lookout l = {0};

	(void)state;
	for (int i = 0; i < 10; i++) {
		assert_true(lookout_begins(&l));
		lookout_ended(&l, true);
	}
}

static void one_that_sees_nothing_looks_ever_less(void **state)
{
	struct lookout l = {0};
	unsigned n = LOOKOUT_SLEEPS_FIRST;

	(void)state;
	assert_true(lookout_begins(&l));
	for (int i = 0; i < 12; i++) {
		lookout_ended(&l, false);
		assert_int_equal(sleeps(&l), n);
		n = n < LOOKOUT_SLEEPS_MAX ? 2 * n : n;
	}
	assert_int_equal(n, LOOKOUT_SLEEPS_MAX);
}

static void once_it_sees_it_looks_again(void **state)
{
	struct lookout l = {0};

	(void)state;
	for (int i = 0; i < 5; i++)
		lookout_ended(&l, false);
	sleeps(&l);
	lookout_ended(&l, true);
	assert_true(lookout_begins(&l));
	lookout_ended(&l, false);
	assert_int_equal(sleeps(&l), LOOKOUT_SLEEPS_FIRST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_sees_looks_each_time),
		cmocka_unit_test(one_that_sees_nothing_looks_ever_less),
		cmocka_unit_test(once_it_sees_it_looks_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
