// SPDX-License-Identifier: BSD-3-Clause
/* The queue of async events of a port. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "hca/seg/port_event.h"

static void in_order(void **state)
{
	_Atomic uint64_t q = 0;

	(void)state;
	assert_int_equal(port_event_take(&q), -1);
	assert_true(port_event_add(&q, 10));
	assert_true(port_event_add(&q, 9));
	assert_true(port_event_add(&q, 0));
	assert_true(port_event_add(&q, 10));
	assert_int_equal(port_event_take(&q), 10);
	assert_int_equal(port_event_take(&q), 9);
	assert_int_equal(port_event_take(&q), 0);
	assert_int_equal(port_event_take(&q), 10);
	assert_int_equal(port_event_take(&q), -1);
}

static void the_same_once(void **state)
{
	_Atomic uint64_t q = 0;

	(void)state;
	assert_true(port_event_add(&q, 18));
	assert_false(port_event_add(&q, 18));
	assert_true(port_event_add(&q, 9));
	assert_true(port_event_add(&q, 18));
	assert_int_equal(port_event_take(&q), 18);
	assert_false(port_event_add(&q, 18));
	assert_int_equal(port_event_take(&q), 9);
	assert_int_equal(port_event_take(&q), 18);
	assert_int_equal(port_event_take(&q), -1);
}

static void full(void **state)
{
	_Atomic uint64_t q = 0;

	(void)state;
	for (unsigned i = 0; i < PORT_EVENTS_MAX; i++)
		assert_true(port_event_add(&q, i));
	assert_false(port_event_add(&q, 40));
	for (unsigned i = 0; i < PORT_EVENTS_MAX; i++)
		assert_int_equal(port_event_take(&q), i);
	assert_int_equal(port_event_take(&q), -1);
}

/* Whatever stands there. */
static void scribbled(void **state)
{
	_Atomic uint64_t q = UINT64_MAX;

	(void)state;
	assert_false(port_event_add(&q, 9));
	for (unsigned i = 0; i < PORT_EVENTS_MAX; i++)
		assert_int_equal(port_event_take(&q), 254);
	assert_int_equal(port_event_take(&q), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order),
		cmocka_unit_test(the_same_once),
		cmocka_unit_test(full),
		cmocka_unit_test(scribbled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
