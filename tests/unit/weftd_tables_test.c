// SPDX-License-Identifier: BSD-3-Clause
/* weftd's leases and timers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "daemon/leases.h"
#include "daemon/timers.h"

static void lease_life(void **state)
{
	struct leases *l = calloc(1, sizeof *l);
	int a, b;

	(void)state;
	leases_init(l, 3);
	a = lease_take(l, 7);
	b = lease_take(l, 8);
	assert_int_equal(a, 3 << 12);
	assert_int_not_equal(a, b);
	assert_int_equal(lease_owner(l, a * LEASE_QPNS + 255), 7);
	assert_int_equal(lease_owner(l, b * LEASE_QPNS), 8);
	assert_int_equal(lease_owner(l, ~0u), 0);
	assert_int_equal(lease_return(l, a, 8), -ENOENT);
	assert_int_equal(lease_return(l, a, 7), 0);
	assert_int_equal(lease_owner(l, a * LEASE_QPNS), 0);
	assert_int_not_equal(lease_take(l, 7), a); /* not at once again */
	lease_drop(l, 7);
	assert_int_equal(l->count, 1);
	free(l);
}

static void lease_claims(void **state)
{
	struct leases *l = calloc(1, sizeof *l);

	(void)state;
	leases_init(l, 0);
	assert_int_equal(lease_claim(l, 0, 7), -EINVAL);
	assert_int_equal(lease_claim(l, LEASE_BLOCKS, 7), -EINVAL);
	assert_int_equal(lease_claim(l, 1, 7), 0);
	assert_int_equal(lease_claim(l, 1, 7), 0);
	assert_int_equal(lease_claim(l, 1, 8), -EEXIST);
	assert_int_equal(l->count, 1);
	assert_int_equal(lease_take(l, 8), 2);
	free(l);
}

static void lease_exhaustion(void **state)
{
	struct leases *l = calloc(1, sizeof *l);

	(void)state;
	leases_init(l, 15);
	for (int i = 1; i < LEASE_BLOCKS; i++)
		assert_true(lease_take(l, 7) > 0);
	assert_int_equal(lease_take(l, 7), -ENOSPC);
	assert_int_equal(lease_return(l, 77, 7), 0);
	assert_int_equal(lease_take(l, 8), 77);
	free(l);
}

static void timers_in_order(void **state)
{
	struct timers *t = calloc(1, sizeof *t);
	uint32_t id, qp;
	uint64_t last = 0;
	unsigned seed = 5;

	(void)state;
	for (int i = 0; i < 500; i++)
		assert_int_equal(timers_set(t, i % 5 + 1, i, 1 + rand_r(&seed) % 1000), 0);
	for (int i = 0; i < 500; i += 3) /* moves, does not add */
		assert_int_equal(timers_set(t, i % 5 + 1, i, 1 + rand_r(&seed) % 1000), 0);
	assert_int_equal(t->count, 500);
	timers_drop(t, 2);
	assert_int_equal(t->count, 400);
	while (t->count) {
		uint64_t when = timers_next(t);

		assert_true(when >= last);
		last = when;
		assert_false(timers_pop(t, when - 1, &id, &qp));
		assert_true(timers_pop(t, when, &id, &qp));
		assert_int_not_equal(id, 2);
		assert_int_equal(id, qp % 5 + 1);
	}
	assert_int_equal(timers_next(t), 0);
	assert_false(timers_pop(t, ~0ull, &id, &qp));
	free(t->heap);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lease_life),
		cmocka_unit_test(lease_claims),
		cmocka_unit_test(lease_exhaustion),
		cmocka_unit_test(timers_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
