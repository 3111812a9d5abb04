// SPDX-License-Identifier: BSD-3-Clause
/* When an acknowledgement leaves, as the program answers what it gets, or does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "roce/ack.h"

enum { MANY = 32 };

static const uint64_t start = 5 * NSEC_PER_SEC;

/* A message came at `now`.  True: its acknowledgement left at once. */
static bool came(struct flow *f, uint64_t now)
{
	bool due;

	f->resp.owed++;
	due = ack_is_due(f, now, false);
	if (due)
		f->resp.owed = 0;
	ack_note(f, now, due, false);
	return due;
}

/* Its answer is posted. */
static void answered(struct flow *f, uint64_t now)
{
	ack_note_post(f, now);
	if (!ack_is_due(f, now, true))
		return;
	f->resp.owed = 0;
	ack_note(f, now, true, true);
}

static void count(struct flow *f)
{
	f->resp.owed = 0;
}

/* The program polls, and answers nothing, until the acknowledgement leaves by itself. */
static void unanswered(struct flow *f, uint64_t now)
{
	if (f->resp.owed) {
		ack_idle(now, count);
		assert_int_equal(f->resp.owed, 0);
		ack_note(f, now, true, false);
	}
}

static void waits_for_an_answer(void **state)
{
	struct flow f = {.replies = true};
	uint64_t now = start;

	(void)state;
	for (unsigned i = 0; i < MANY; i++, now += NSEC_PER_MSEC) {
		assert_false(came(&f, now));
		assert_false(ack_is_due(&f, now + NSEC_PER_USEC, false));
		answered(&f, now + NSEC_PER_USEC);
		assert_int_equal(f.resp.owed, 0);
	}
	ack_forget(&f);
}

static void does_not_wait_for_long(void **state)
{
	struct flow f = {.replies = true};

	(void)state;
	assert_false(came(&f, start));
	unanswered(&f, start + 6 * NSEC_PER_USEC);
	assert_true(came(&f, start + NSEC_PER_MSEC));
	ack_forget(&f);
}

static void one_without_answer_changes_little(void **state)
{
	struct flow f = {.replies = true};
	uint64_t now = start;

	(void)state;
	for (unsigned i = 0; i < 3; i++, now += NSEC_PER_MSEC) {
		assert_false(came(&f, now));
		answered(&f, now + NSEC_PER_USEC);
	}
	assert_false(came(&f, now));
	unanswered(&f, now + 6 * NSEC_PER_USEC);
	assert_false(came(&f, now + NSEC_PER_MSEC));
	ack_forget(&f);
}

static void many_without_answer_end_it(void **state)
{
	struct flow f = {.replies = true, .credit = 8};
	uint64_t now = start;

	(void)state;
	for (unsigned i = 0; i < MANY; i++, now += NSEC_PER_MSEC) {
		came(&f, now);
		unanswered(&f, now + 6 * NSEC_PER_USEC);
	}
	assert_true(came(&f, now));
	ack_forget(&f);
}

static void learns_that_it_answers(void **state)
{
	struct flow f = {.replies = false};
	uint64_t now = start;

	(void)state;
	for (unsigned i = 0; i < 3; i++, now += NSEC_PER_MSEC) {
		assert_true(came(&f, now));
		answered(&f, now + 2 * NSEC_PER_USEC);
	}
	assert_false(came(&f, now));
	ack_forget(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_for_an_answer),
		cmocka_unit_test(does_not_wait_for_long),
		cmocka_unit_test(one_without_answer_changes_little),
		cmocka_unit_test(many_without_answer_end_it),
		cmocka_unit_test(learns_that_it_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
