// SPDX-License-Identifier: BSD-3-Clause
/* Places in the arena that somebody may still touch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hca/mem/place.h"

struct held_place {
	struct place place; /* first member */
	bool is_over;
	unsigned emptied, ended;
};

static bool over(const struct place *p)
{
	return ((const struct held_place *)p)->is_over;
}

static void empty(struct place *p)
{
	((struct held_place *)p)->emptied++;
	assert_int_equal(((struct held_place *)p)->ended, 0);
}

static void end(struct place *p)
{
	((struct held_place *)p)->ended++;
}

static const struct place_kind quick = {.over = over, .empty = empty, .end = end};
static const struct place_kind slow = {
	.stays = true, .waits = true, .over = over, .empty = empty, .end = end};

static struct held_place at(uint64_t lo, uint64_t hi)
{
	return (struct held_place){.place = {.lo = lo, .hi = hi}};
}

static void bounds(void **state)
{
	struct held_place a = at(0x1000, 0x3000), none = at(0, 0);

	(void)state;
	place_add(&a.place, &quick);
	place_add(&none.place, &quick);
	assert_true(place_covers(0x2000, 0x2001));
	assert_true(place_covers(0, 0x1001));
	assert_false(place_covers(0, 0x1000));
	assert_false(place_covers(0x3000, UINT64_MAX));
	assert_true(place_covers(0, UINT64_MAX));
	a.is_over = true;
	place_end(place_sweep(false));
	assert_int_equal(a.ended, 1);
	assert_int_equal(none.ended, 0);
	assert_false(place_covers(0, UINT64_MAX));
	place_forked_child();
}

/* Those that wait are left alone where nobody may wait, and the other way round. */
static void two_kinds(void **state)
{
	struct held_place fast = at(0x1000, 0x2000), waits = at(0x5000, 0x6000);
	struct place *gone;

	(void)state;
	assert_false(place_any());
	place_add(&waits.place, &slow);
	assert_false(place_any());
	place_add(&fast.place, &quick);
	assert_true(place_any());
	fast.is_over = waits.is_over = true;
	gone = place_sweep(false);
	assert_int_equal(fast.emptied, 1);
	assert_int_equal(fast.ended, 0);
	assert_int_equal(waits.emptied, 0);
	assert_false(place_any());
	place_end(gone);
	assert_int_equal(fast.ended, 1);
	place_end(place_sweep(true));
	assert_int_equal(waits.emptied, 1);
	assert_int_equal(waits.ended, 1);
	assert_null(place_sweep(true));
}

static void for_a_fork(void **state)
{
	struct held_place fast = at(0x1000, 0x2000), waits = at(0x5000, 0x6000);

	(void)state;
	place_add(&fast.place, &quick);
	assert_false(place_stays());
	place_add(&waits.place, &slow);
	assert_true(place_stays());
	waits.is_over = true;
	place_end(place_sweep(true));
	assert_false(place_stays());
	place_leave_behind();
	assert_true(place_stays());
	place_forked_child();
	assert_false(place_stays());
	assert_false(place_any());
	assert_false(place_covers(0, UINT64_MAX));
	assert_int_equal(fast.ended, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds),
		cmocka_unit_test(two_kinds),
		cmocka_unit_test(for_a_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
