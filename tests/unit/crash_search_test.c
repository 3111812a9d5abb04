// SPDX-License-Identifier: BSD-3-Clause
/* The search where much is pending: its work must not grow with the square of that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "crash/search.h"

enum { RECORDS = 10000, WORDS_EACH = 2, WORDS = RECORDS * WORDS_EACH, BAD = 7617, NEEDED = 17 };

static struct crash_state many_writes(void)
{
	struct crash_state s;
	struct crash_region *r = calloc(1, sizeof *r);

	crash_state_init(&s);
	r->words = WORDS;
	r->len = WORDS * sizeof(uint64_t);
	r->durable = calloc(WORDS, sizeof *r->durable);
	r->visible = calloc(WORDS, sizeof *r->visible);
	r->mark = calloc(WORDS, sizeof *r->mark);
	s.regions = r;
	s.n_regions = 1;
	s.pending = calloc(WORDS, sizeof *s.pending);
	s.n_pending = s.max_pending = WORDS;
	for (uint64_t i = 0; i < WORDS; i++)
		s.pending[i] =
			(struct crash_pending){.word = i, .value = i + 1, .record = i / WORDS_EACH};
	return s;
}

static unsigned calls;

/* One write is needed by another. */
static int needs(void *arg, const struct crash_state *s, struct crash_point at, const uint8_t *keep)
{
	(void)arg;
	(void)s;
	(void)at;
	calls++;
	return !keep[BAD * WORDS_EACH] && keep[NEEDED * WORDS_EACH];
}

/* The images of the search as it was took minutes for that. */
static void much_is_pending(void **state)
{
	struct crash_search q = {.images = 64, .check = needs};
	struct crash_state s = many_writes();
	uint8_t *lost = calloc(1, WORDS), *keep;

	(void)state;
	assert_int_equal(crash_search_point(&q, &s, (struct crash_point){RECORDS - 1}, &keep), 1);
	crash_find_lost(&s, keep, lost);
	for (uint64_t i = 0; i < WORDS; i++)
		assert_int_equal(lost[i], i == BAD * WORDS_EACH);
	assert_int_equal(keep[NEEDED * WORDS_EACH], CRASH_KEPT);
	assert_in_range(calls, 1, 2000);
	crash_search_end(&q);
	crash_state_free(&s);
	free(keep);
	free(lost);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(much_is_pending)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
