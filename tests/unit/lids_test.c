// SPDX-License-Identifier: BSD-3-Clause
/* Which port has which LIDs: the text of it, giving them, taking them away. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sm/lids.h"

static void lids_text(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{"# nothing\n\n0x1 0x0005 0x0005\n 0x2 7\n", NULL},
		{"0x1 0x5 0x5", NULL},
		{"x\n", "f:1: a line begins with a GUID that is not 0"},
		{"\n0x0 1\n", "f:2: a line begins with a GUID that is not 0"},
		{"0x1\n", "f:1: a line begins with a GUID that is not 0"},
		{"0x1 0xc000\n", "f:1: after the GUID comes a unicast LID, 1 to 0xbfff"},
		{"0x1 0\n", "f:1: after the GUID comes a unicast LID, 1 to 0xbfff"},
		{"0x1 5 4\n", "f:1: the last LID is a unicast one, and not below the first"},
		{"0x1 5 5 5\n", "f:1: after the last LID nothing follows"},
		{"0x1 5 6\n", "f:1: so many LIDs a port has not, or not from this one on"},
		{"0x1 4 6\n", "f:1: so many LIDs a port has not, or not from this one on"},
		{"0x1 0x100 0x1ff\n", "f:1: so many LIDs a port has not, or not from this one on"},
		{"0x1 5\n0x2 4 5\n", "f:2: this LID is another GUID's already"},
		{"0x1 5\n0x1 6\n", "f:2: this GUID has another LID already"},
		{"0x1 5\n0x2 5\n", "f:2: this LID is another GUID's already"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct lids *l = calloc(1, sizeof *l);
		FILE *in = fmemopen((char *)cases[i].text, strlen(cases[i].text), "r");
		char error[TOPO_ERROR] = "";

		assert_non_null(l);
		assert_int_equal(lids_read(l, in, "f", error), cases[i].error ? -EINVAL : 0);
		if (cases[i].error)
			assert_string_equal(error, cases[i].error);
		else
			assert_int_equal(lids_of(l, 1), 5);
		fclose(in);
		free(l);
	}
}

/* All LIDs given, some taken away and given again, with chains of one hash. */
static void lids_run_out(void **state)
{
	struct lids *l = calloc(1, sizeof *l);

	(void)state;
	assert_non_null(l);
	for (unsigned i = 1; i <= TOPO_UNICAST_LIDS; i++)
		assert_int_equal(lids_give(l, 1000 + i, 0), i);
	assert_int_equal(lids_give(l, 5, 0), 0);
	assert_int_equal(lids_claim(l, 5, 77, 0), -EEXIST);
	assert_int_equal(lids_take(l, 5, 77, 0), 0);
	assert_int_equal(lids_of(l, 1077), 0);
	assert_int_equal(lids_of(l, 1076), 76);
	assert_int_equal(lids_take(l, 5, 79, 0), 0);
	assert_int_equal(lids_give(l, 1079, 0), 77);
	for (unsigned i = 80; i <= TOPO_UNICAST_LIDS; i++)
		assert_int_equal(lids_of(l, 1000 + i), i);
	free(l);
}

/* Blocks of LIDs: aligned, never overlapping, and gone as a whole. */
static void lids_of_lmcs(void **state)
{
	struct lids *l = calloc(1, sizeof *l);

	(void)state;
	assert_non_null(l);
	assert_int_equal(lids_give(l, 1, 0), 1);
	assert_int_equal(lids_give(l, 2, 2), 4);
	assert_int_equal(lids_give(l, 3, 0), 2);
	assert_int_equal(lids_give(l, 4, 1), 8);
	assert_int_equal(lids_give(l, 5, 0), 3);
	assert_int_equal(lids_give(l, 6, 0), 10);
	assert_int_equal(lids_lmc(l, 4), 2);
	assert_int_equal(lids_lmc(l, 3), 0);
	assert_int_equal(lids_claim(l, 7, 5, 0), -EEXIST);
	assert_int_equal(lids_claim(l, 7, 9, 1), -EINVAL);
	assert_int_equal(lids_claim(l, 7, 0, 1), -EINVAL);
	assert_int_equal(lids_claim(l, 7, 0xbf80, 8), -EINVAL);
	assert_int_equal(lids_claim(l, 7, 0xbf80, 7), 0);
	assert_int_equal(lids_claim(l, 8, 0xbfff, 0), -EEXIST);
	assert_int_equal(lids_claim(l, 2, 4, 1), 0); /* it keeps the first half */
	assert_int_equal(lids_claim(l, 8, 6, 1), 0);
	assert_int_equal(lids_claim(l, 2, 4, 2), -EEXIST);
	assert_int_equal(lids_of(l, 2), 4);
	assert_int_equal(lids_take(l, 2, 4, 2), 0);
	assert_int_equal(lids_of(l, 8), 0);
	assert_int_equal(lids_take(l, 9, 5, 0), 0); /* one of four: all four go */
	assert_int_equal(lids_of(l, 2), 0);
	assert_int_equal(lids_give(l, 10, 0), 4);
	assert_int_equal(lids_give(l, 11, 1), 6);
	assert_int_equal(lids_give(l, 9, 1), 12); /* another LMC: other LIDs */
	assert_int_equal(lids_give(l, 12, 0), 5);
	free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lids_text),
		cmocka_unit_test(lids_run_out),
		cmocka_unit_test(lids_of_lmcs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
