// SPDX-License-Identifier: BSD-3-Clause
/* The table of regions: entries that stay taken, and are given to others later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hca/obj/mr.h"
#include "hca/proc/tables.h"

static void add(struct hca_mr *mr)
{
	int index = table_add_mr(mr);

	assert_true(index > 0);
	mr->index = index;
}

static void entry_of_another(void **state)
{
	struct hca_mr old = {.key = 1}, next = {.key = 2};

	(void)state;
	add(&old);
	assert_ptr_equal(table_mr(old.index), &old);
	table_hold_mr(&old);
	assert_ptr_not_equal(table_mr(old.index), &old);
	assert_int_equal(table_mr(old.index)->key, 0);
	add(&next);
	assert_int_not_equal(next.index, old.index);
	table_return_mr(&old);
	assert_ptr_equal(table_mr(old.index), &old);
	table_hold_mr(&old);
	table_del_mr(old.index);
	for (unsigned n = 0; next.index != old.index && n < SEG_MRS; n++) {
		table_del_mr(next.index);
		add(&next);
	}
	assert_int_equal(next.index, old.index);
	table_hold_mr(&old);
	assert_ptr_equal(table_mr(next.index), &next);
	table_del_mr(next.index);
	table_hold_mr(&old);
	assert_null(table_mr(old.index));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(entry_of_another)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
