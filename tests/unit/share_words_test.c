// SPDX-License-Identifier: BSD-3-Clause
/* hca/mem/share_words.c: each reason has words of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hca/mem/share_words.h"

static void each_has_its_own(void **state)
{
	const char *none = share_words(SHARE_REASONS);

	(void)state;
	for (int why = 0; why < SHARE_REASONS; why++) {
		assert_string_not_equal(share_words(why), none);
		for (int other = 0; other < why; other++)
			assert_string_not_equal(share_words(why), share_words(other));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_has_its_own)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
