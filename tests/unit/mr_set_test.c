// SPDX-License-Identifier: BSD-3-Clause
/* The set of regions by address, beside a list that is searched whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hca/mem/mr_set.h"
#include "hca/obj/mr.h"

enum { N = 400, SPACE = 2000, STEPS = 20000 };

static struct hca_mr mr[N];
static struct mr_set set;

struct seen {
	unsigned n, stop_at;
	uint64_t last;
	bool found[N];
};

static bool note(struct hca_mr *m, void *arg)
{
	struct seen *s = arg;

	assert_true(m->lo >= s->last);
	assert_false(s->found[m - mr]);
	s->last = m->lo;
	s->found[m - mr] = true;
	return ++s->n != s->stop_at;
}

static void compare(uint64_t lo, uint64_t hi)
{
	struct seen s = {.n = 0};
	unsigned n = 0;

	mr_set_each(&set, lo, hi, note, &s);
	for (int i = 0; i < N; i++) {
		bool overlaps = mr[i].in_set && mr[i].lo < hi && mr[i].hi > lo;

		assert_int_equal(s.found[i], overlaps);
		n += overlaps;
	}
	assert_int_equal(s.n, n);
}

static void finds_what_overlaps(void **state)
{
	(void)state;
	srand(1);
	for (int step = 0; step < STEPS; step++) {
		struct hca_mr *m = &mr[rand() % N];

		if (m->in_set) {
			mr_set_del(&set, m);
		} else {
			m->lo = rand() % SPACE;
			m->hi = m->lo + 1 + rand() % (step % 3 ? 20 : SPACE);
			mr_set_add(&set, m);
		}
		m->in_set = !m->in_set;
		if (step % 10 == 0) {
			uint64_t lo = rand() % SPACE;

			compare(lo, lo + 1 + rand() % 50);
		}
	}
	compare(0, UINT64_MAX);
}

static void stops_when_told(void **state)
{
	struct seen s = {.stop_at = 3};

	(void)state;
	mr_set_each(&set, 0, UINT64_MAX, note, &s);
	assert_int_equal(s.n, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_overlaps),
		cmocka_unit_test(stops_when_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
