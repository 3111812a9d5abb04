// SPDX-License-Identifier: BSD-3-Clause
/* When a peer is known to be Weft, and what is made of packets of another port. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "roce/proto/origin.h"
#include "wire/roce.h"

enum { ADAPTER = 0xc123, OTHER = 0xfedc };

static void fit(struct origin *o, uint16_t port, bool unreliable, unsigned n)
{
	while (n--)
		origin_fits(o, port, unreliable);
}

/* The first packet that fits in tells, for good. */
static void reliable(void **state)
{
	struct origin o = {0};

	(void)state;
	assert_int_equal(origin_of(&o, ADAPTER), ORIGIN_KNOWN);
	fit(&o, ROCE_PORT, false, 1);
	assert_true(o.weft);
	assert_int_equal(origin_of(&o, ROCE_PORT), ORIGIN_KNOWN);
	assert_int_equal(origin_of(&o, ADAPTER), ORIGIN_FORGED);
	fit(&o, ADAPTER, false, 1);
	assert_int_equal(origin_of(&o, ADAPTER), ORIGIN_FORGED);
}

/* An adapter stays one, whatever port it takes. */
static void adapter(void **state)
{
	struct origin o = {0};

	(void)state;
	fit(&o, ADAPTER, false, 1);
	assert_int_equal(origin_of(&o, ADAPTER), ORIGIN_KNOWN);
	assert_int_equal(origin_of(&o, OTHER), ORIGIN_OTHER);
	fit(&o, OTHER, false, 1);
	assert_int_equal(origin_of(&o, OTHER), ORIGIN_KNOWN);
	fit(&o, ROCE_PORT, false, 1);
	assert_false(o.weft);
	assert_int_equal(origin_of(&o, ADAPTER), ORIGIN_OTHER);
}

/* On UC one that fits in is easily had: many in a row, and none of another port between them. */
static void unreliable(void **state)
{
	struct origin o = {0};

	(void)state;
	fit(&o, ROCE_PORT, true, ORIGIN_ROW - 1);
	fit(&o, OTHER, true, 1);
	fit(&o, ROCE_PORT, true, ORIGIN_ROW - 1);
	assert_false(o.weft);
	fit(&o, ROCE_PORT, true, 1);
	assert_true(o.weft);
	assert_int_equal(origin_of(&o, OTHER), ORIGIN_FORGED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reliable),
		cmocka_unit_test(adapter),
		cmocka_unit_test(unreliable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
