// SPDX-License-Identifier: BSD-3-Clause
/* Text of others, as a terminal gets it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/text.h"

static void shown(const char *from, const char *want)
{
	char to[64];

	assert_int_equal(text_escape(to, sizeof to, from, strlen(from)), strlen(want));
	assert_string_equal(to, want);
}

static void plain(void **state)
{
	(void)state;
	shown("", "");
	shown("a b~\\x", "a b~\\x");
	shown("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
}

static void controls(void **state)
{
	(void)state;
	shown("a\nb\tc\r", "a\\x0ab\\x09c\\x0d");
	shown("\x1b[31m\x7f", "\\x1b[31m\\x7f");
	shown("\xc2\x9b"
	      "2J",
		"\\xc2\\x9b"
		"2J"); /* CSI of eight bits, as UTF-8 ... */
	shown("\x9b"
	      "2J",
		"\\x9b"
		"2J"); /* ... and as a byte */
	shown("\xe2\x80\xae"
	      "x",
		"\\xe2\\x80\\xae"
		"x"); /* from right to left */
}

static void no_utf8(void **state)
{
	(void)state;
	shown("\xff", "\\xff");
	shown("\xc3", "\\xc3");
	shown("\xe2\x82", "\\xe2\\x82");
	shown("\xc0\x8a", "\\xc0\\x8a");                   /* a newline in too many bytes */
	shown("\xed\xa0\x80", "\\xed\\xa0\\x80");          /* half a pair */
	shown("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* above all characters */
}

/* Whole characters and whole escapes alone, and always an end. */
static void short_of_room(void **state)
{
	char to[8];

	(void)state;
	for (size_t size = 1; size <= sizeof to; size++) {
		size_t n = text_escape(to, size, "\xc3\xa9\n\n", 4);

		assert_int_equal(n, size < 3 ? 0 : size < 7 ? 2 : 6);
		assert_int_equal(to[n], 0);
	}
	assert_int_equal(text_escape(to, sizeof to, "a\0b", 3), 6);
	assert_string_equal(to, "a\\x00b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(plain), cmocka_unit_test(controls),
		cmocka_unit_test(no_utf8), cmocka_unit_test(short_of_room)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
