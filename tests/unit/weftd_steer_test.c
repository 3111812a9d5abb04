// SPDX-License-Identifier: BSD-3-Clause
/* Leases as ranges of queue pair numbers for the sockets of UDP port 4791. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "daemon/port/steer.h"

enum { HAS_NONE = 99 };

/* Process n has seat n, but one. */
static uint32_t seat_of(void *arg, uint32_t attach_id)
{
	unsigned *asked = arg;

	++*asked;
	return attach_id == HAS_NONE ? 0 : attach_id;
}

static void check_range(const struct steer_range *r, uint32_t block, uint32_t blocks, int index)
{
	assert_int_equal(r->first, block * LEASE_QPNS);
	assert_int_equal(r->last, (block + blocks) * LEASE_QPNS - 1);
	assert_int_equal(r->index, index);
}

static void neighbours_are_one(void **state)
{
	static const uint32_t owners[] = {0, 1, 1, 2, HAS_NONE, 2, 0, 2, 1};
	struct leases *l = calloc(1, sizeof *l);
	struct wire_ranges *r = malloc(sizeof *r);
	unsigned asked = 0;

	(void)state;
	memset(r, 0xff, sizeof *r);
	memcpy(l->owner, owners, sizeof owners);
	l->owner[LEASE_BLOCKS - 1] = 3;
	wire_ranges_make(r, l, seat_of, &asked);
	assert_int_equal(r->n, 6);
	assert_int_equal(r->left_out, 0);
	check_range(&r->at[0], 1, 2, 1);
	check_range(&r->at[1], 3, 1, 2);
	check_range(&r->at[2], 5, 1, 2);
	check_range(&r->at[3], 7, 1, 2);
	check_range(&r->at[4], 8, 1, 1);
	check_range(&r->at[5], LEASE_BLOCKS - 1, 1, 3);
	/* A lookup for each run of blocks, not for each block. */
	assert_int_equal(asked, 6);
	free(r);
	free(l);
}

static void none_is_empty(void **state)
{
	struct leases *l = calloc(1, sizeof *l);
	struct wire_ranges *r = malloc(sizeof *r);
	unsigned asked = 0;

	(void)state;
	l->owner[5] = HAS_NONE;
	wire_ranges_make(r, l, seat_of, &asked);
	assert_int_equal(r->n, 0);
	free(r);
	free(l);
}

/* More than there is room for: counted, so that weft status can tell. */
static void too_many_are_counted(void **state)
{
	struct leases *l = calloc(1, sizeof *l);
	struct wire_ranges *r = malloc(sizeof *r);
	unsigned asked = 0;

	(void)state;
	for (uint32_t block = 1; block < LEASE_BLOCKS; block++)
		l->owner[block] = 1 + block % 2;
	wire_ranges_make(r, l, seat_of, &asked);
	assert_int_equal(r->n, STEER_RANGES_MAX);
	assert_int_equal(r->left_out, LEASE_BLOCKS - 1 - STEER_RANGES_MAX);
	free(r);
	free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neighbours_are_one),
		cmocka_unit_test(none_is_empty),
		cmocka_unit_test(too_many_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
