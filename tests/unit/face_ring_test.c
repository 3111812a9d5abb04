// SPDX-License-Identifier: BSD-3-Clause
/* Byte rings, and the credit that says what may be put into the peer's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "face/credit.h"
#include "face/ring.h"

enum { ROOM = 7 }; /* of a ring; not a power of two */

static void pieces_end_with_the_ring(void **state)
{
	(void)state;
	assert_int_equal(ring_piece(ROOM, 0, 3), 3);
	assert_int_equal(ring_piece(ROOM, 0, ROOM), ROOM);
	assert_int_equal(ring_piece(ROOM, 5, 3), 2);
	assert_int_equal(ring_piece(ROOM, 5, 2), 2);
	assert_int_equal(ring_piece(ROOM, 6, 4), 1);
}

/* Each start and each length: what comes out is what went in, and nothing else was written. */
static void bytes_go_round(void **state)
{
	uint8_t memory[ROOM + 2], out[ROOM];

	(void)state;
	for (uint64_t from = 0; from < 3 * ROOM; from++) {
		for (size_t n = 0; n <= ROOM; n++) {
			memset(memory, 0xee, sizeof memory);
			ring_put(memory + 1, ROOM, from, "abcdefg", n);
			ring_get(memory + 1, ROOM, from, out, n);
			assert_memory_equal(out, "abcdefg", n);
			for (size_t k = n; k < ROOM; k++)
				assert_int_equal(memory[1 + (from + k) % ROOM], 0xee);
			assert_int_equal(memory[0], 0xee);
			assert_int_equal(memory[ROOM + 1], 0xee);
		}
	}
}

static void room_is_what_was_not_taken(void **state)
{
	struct credit_out c = {.room = {100, 10}};

	(void)state;
	assert_int_equal(credit_bytes(&c), 100);
	assert_int_equal(credit_msgs(&c), 10);
	c.sent = (struct credit){100, 3};
	assert_int_equal(credit_bytes(&c), 0);
	assert_int_equal(credit_msgs(&c), 7);
	assert_true(credit_hear(&c, (struct credit){60, 3}));
	assert_int_equal(credit_bytes(&c), 60);
	assert_int_equal(credit_msgs(&c), 10);
}

static void older_news_changes_nothing(void **state)
{
	struct credit_out c = {.sent = {50, 5}, .taken = {40, 4}, .room = {100, 10}};

	(void)state;
	assert_true(credit_recedes(&c, (struct credit){39, 5}));
	assert_true(credit_recedes(&c, (struct credit){50, 3}));
	assert_false(credit_recedes(&c, (struct credit){40, 4}));
	assert_true(credit_hear(&c, (struct credit){39, 5}));
	assert_int_equal(c.taken.bytes, 40);
	assert_int_equal(c.taken.msgs, 5);
}

static void more_than_was_sent_is_refused(void **state)
{
	struct credit_out c = {.sent = {50, 5}, .room = {100, 10}};

	(void)state;
	assert_false(credit_hear(&c, (struct credit){51, 5}));
	assert_false(credit_hear(&c, (struct credit){50, 6}));
	assert_false(credit_hear(&c, (struct credit){UINT64_MAX, 0}));
	assert_int_equal(c.taken.bytes, 0);
	assert_int_equal(c.taken.msgs, 0);
	assert_true(credit_hear(&c, (struct credit){50, 5}));
}

/* Of totals that pass 32 bits, from what is known of them. */
static void totals_are_made_whole(void **state)
{
	static const uint64_t near = UINT64_C(0x1fffffff0);

	(void)state;
	assert_int_equal(credit_whole(0, 7), 7);
	assert_int_equal(credit_whole(near, 0xfffffff8), near + 8);
	assert_int_equal(credit_whole(near, 0x10), UINT64_C(0x200000010));
	assert_int_equal(credit_whole(near, 0xffffffe0), near - 16);
	assert_true(credit_whole(0, 0xffffffff) > UINT32_MAX); /* before the beginning: refused */
}

static void untold_is_what_was_taken_since(void **state)
{
	struct credit_in c = {.came = {90, 9}, .taken = {80, 8}, .told = {75, 2}};

	(void)state;
	assert_int_equal(credit_untold(&c).bytes, 5);
	assert_int_equal(credit_untold(&c).msgs, 6);
	c.told = c.taken;
	assert_int_equal(credit_untold(&c).bytes, 0);
	assert_int_equal(credit_untold(&c).msgs, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_end_with_the_ring),
		cmocka_unit_test(bytes_go_round),
		cmocka_unit_test(room_is_what_was_not_taken),
		cmocka_unit_test(older_news_changes_nothing),
		cmocka_unit_test(more_than_was_sent_is_refused),
		cmocka_unit_test(totals_are_made_whole),
		cmocka_unit_test(untold_is_what_was_taken_since),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
