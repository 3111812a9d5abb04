// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "pages/iov.h"

static char a[10], b[20], c[5];

static void three(struct sgl *l)
{
	sgl_reset(l);
	sgl_add(l, (uintptr_t)a, sizeof a);
	sgl_add(l, (uintptr_t)b, 0);
	sgl_add(l, (uintptr_t)b, sizeof b);
	sgl_add(l, (uintptr_t)c, sizeof c);
}

static void empty_pieces_vanish(void **state)
{
	struct sgl l;

	(void)state;
	three(&l);
	assert_int_equal(l.n, 3);
	assert_int_equal(l.left, 35);
}

static void consume_crosses_pieces(void **state)
{
	struct sgl l;

	(void)state;
	three(&l);
	sgl_consume(&l, 9);
	assert_int_equal(l.at, 0);
	sgl_consume(&l, 1);
	assert_int_equal(l.at, 1);
	sgl_consume(&l, 22);
	assert_int_equal(l.at, 2);
	assert_ptr_equal(l.v[2].iov_base, c + 2);
	assert_int_equal(l.v[2].iov_len, 3);
	sgl_consume(&l, 3);
	assert_int_equal(l.left, 0);
	assert_int_equal(l.at, 3);
}

static void the_last_piece_is_taken_whole(void **state)
{
	struct sgl l;

	(void)state;
	three(&l);
	assert_false(sgl_is_one(&l));
	sgl_consume(&l, 32);
	assert_true(sgl_is_one(&l));
	assert_ptr_equal(sgl_take_one(&l), c + 2);
	assert_int_equal(l.left, 0);
	assert_false(sgl_is_one(&l));
}

static void gather_and_scatter(void **state)
{
	uint8_t flat[35], back[36];
	struct sgl l;

	(void)state;
	for (unsigned i = 0; i < sizeof flat; i++)
		flat[i] = i + 1;
	memset(back, 0xee, sizeof back);
	three(&l);
	sgl_scatter(&l, flat, sizeof flat);
	assert_int_equal(a[9], 10);
	assert_int_equal(c[4], 35);
	sgl_gather(&l, back);
	assert_memory_equal(back, flat, sizeof flat);
	assert_int_equal(back[35], 0xee);
	memset(c, 0, sizeof c);
	sgl_scatter(&l, flat, 32); /* shorter than the list: the rest stays */
	assert_int_equal(c[1], 32);
	assert_int_equal(c[2], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_pieces_vanish),
		cmocka_unit_test(consume_crosses_pieces),
		cmocka_unit_test(the_last_piece_is_taken_whole),
		cmocka_unit_test(gather_and_scatter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
