// SPDX-License-Identifier: BSD-3-Clause
/* The order in which the receives of a UD QP get what slots hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hca/queue/rxq_order.h"

enum { SLOTS = 8, MANY = 1 << 18, SMALL = 10, LARGE = 1000 };

static struct rxq_order order;
static uint32_t first, end;

static int set_up(void **state)
{
	(void)state;
	first = end = UINT32_MAX - 3; /* the numbers turn over */
	return rxq_order_init(&order, SLOTS, 5);
}

static int tear_down(void **state)
{
	(void)state;
	rxq_order_free(&order);
	return 0;
}

static void post(uint64_t id, uint32_t room)
{
	struct seg_rqe *r = rxq_order_new(&order, end++);

	r->wr_id = id;
	r->num_sge = 5;
	for (int i = 0; i < 3; i++)
		r->near[i].length = 0;
	r->far[0].length = room / 2;
	r->far[1].length = room - room / 2;
}

static void take(uint32_t slot, uint32_t len, uint64_t id)
{
	const struct seg_rqe *r = rxq_order_take(&order, first, end, slot, len);

	assert_non_null(r);
	assert_int_equal(r->wr_id, id);
	first++;
}

static void land(uint32_t slot, uint32_t len, uint64_t id)
{
	const struct seg_rqe *r = rxq_order_land(&order, first, end, slot, len);

	assert_non_null(r);
	assert_int_equal(r->wr_id, id);
}

static void is_that_of_posting(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < SLOTS; i++)
		post(i, LARGE);
	take(5, LARGE, 0);
	take(0, SMALL, 1);
	post(8, LARGE);
	take(2, 0, 2);
	for (uint64_t i = 3; i <= 8; i++)
		take(i % SLOTS, LARGE, i);
	assert_null(rxq_order_take(&order, first, end, 0, 0));
	assert_null(rxq_order_land(&order, first, end, 0, 0));
}

static void keeps_what_has_landed(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		post(i, LARGE);
	land(6, LARGE, 0);
	land(7, LARGE, 1);
	/* One that came later completes before them: it may not have their memory. */
	take(3, LARGE, 2);
	take(7, LARGE, 1);
	take(6, LARGE, 0);
	assert_int_equal(order.landed, 0);
	take(1, LARGE, 3);
}

static void skips_what_is_too_small(void **state)
{
	(void)state;
	post(0, SMALL);
	post(1, SMALL);
	post(2, LARGE);
	post(3, LARGE);
	land(4, LARGE, 2);
	take(5, LARGE, 3);
	take(4, LARGE, 2);
	take(0, SMALL, 0);
	/* None has room: its owner is told by the oldest. */
	assert_null(rxq_order_land(&order, first, end, 1, LARGE));
	take(1, LARGE, 1);
}

/* A region goes while a whole queue waits to be polled: not each looks at all before it. */
static void lands_many(void **state)
{
	(void)state;
	rxq_order_free(&order);
	assert_int_equal(rxq_order_init(&order, MANY, 5), 0);
	for (uint64_t i = 0; i < MANY; i++)
		post(i, LARGE);
	for (uint32_t i = 0; i < MANY; i++)
		land(i, LARGE, i);
	for (uint32_t i = 0; i < MANY; i++)
		take(i, LARGE, i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(is_that_of_posting, set_up, tear_down),
		cmocka_unit_test_setup_teardown(keeps_what_has_landed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(skips_what_is_too_small, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lands_many, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
