// SPDX-License-Identifier: BSD-3-Clause
/* How long a thread looks before it sleeps, and what it learns from that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/spin.h"
#include "face/look.h"

enum { SOON = 1000, LATE = 10 * LOOK_LONG_NS };

/* On a single CPU nobody ever looks. */
static uint64_t ns(uint64_t usual)
{
	return spin_limit_ns(usual);
}

static void asleep_for_long_changes_nothing(void **state)
{
	struct look l = {0};

	(void)state;
	for (int i = 0; i < 10; i++) {
		assert_int_equal(look_begins(&l, LOOK_NS), ns(LOOK_NS));
		look_failed(&l);
		look_slept(&l, LATE);
	}
}

static void woken_soon_looks_longer(void **state)
{
	struct look l = {0};

	(void)state;
	look_failed(&l);
	look_slept(&l, SOON);
	assert_int_equal(look_begins(&l, LOOK_NS), ns(LOOK_LONG_NS));
	assert_int_equal(look_begins(&l, LOOK_NS), ns(LOOK_LONG_NS)); /* it paid */
	assert_int_equal(look_begins(&l, 2 * LOOK_LONG_NS), ns(2 * LOOK_LONG_NS));
}

/* How many sleeps from a failure until it looks for longer again. */
static unsigned sleeps_until_longer(struct look *l)
{
	unsigned n = 0;

	for (; !l->longer; n++) {
		look_failed(l);
		look_slept(l, SOON);
	}
	return n;
}

static void failures_double_the_pause(void **state)
{
	struct look l = {0};

	(void)state;
	assert_int_equal(sleeps_until_longer(&l), 1);
	for (unsigned pause = 1; pause <= 256; pause *= 2) {
		look_begins(&l, LOOK_NS);
		look_failed(&l);
		assert_int_equal(look_begins(&l, LOOK_NS), ns(LOOK_NS));
		assert_int_equal(sleeps_until_longer(&l), pause + 1);
	}
	look_failed(&l);
	assert_int_equal(sleeps_until_longer(&l), 257); /* and no further */
}

static void many_wins_are_forgiven(void **state)
{
	struct look l = {0};

	(void)state;
	for (int i = 0; i < 5; i++) {
		sleeps_until_longer(&l);
		look_failed(&l);
	}
	sleeps_until_longer(&l);
	for (int i = 0; i < 9; i++)
		look_begins(&l, LOOK_NS);
	look_failed(&l);
	assert_int_equal(sleeps_until_longer(&l), 2);
}

/* Who does not want to look at all never does. */
static void nothing_stays_nothing(void **state)
{
	struct look l = {.longer = true};

	(void)state;
	assert_int_equal(look_begins(&l, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asleep_for_long_changes_nothing),
		cmocka_unit_test(woken_soon_looks_longer),
		cmocka_unit_test(failures_double_the_pause),
		cmocka_unit_test(many_wins_are_forgiven),
		cmocka_unit_test(nothing_stays_nothing),
	};

	unsetenv("WEFT_SPIN_US");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
