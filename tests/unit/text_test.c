// SPDX-License-Identifier: BSD-3-Clause
/* Text of others, as a terminal gets it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static void shown(const char *from, const char *want)
{
	char to[64];
	size_t n = text_escape(to, sizeof to, from, strlen(from));

	assert_string_equal(to, want);
	assert_int_equal(n, strlen(want));
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

/* Direction marks, separators, embeddings, isolates: from and to, in UTF-8 of three bytes. */
static void what_turns_lines_around(void **state)
{
	static const struct {
		uint32_t first, last;
	} those[] = {{0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
	char from[4] = "", want[13];

	(void)state;
	for (uint32_t c = 0x2000; c <= 0x206f; c++) {
		bool is = false;

		for (size_t i = 0; i < sizeof those / sizeof *those; i++)
			is |= c >= those[i].first && c <= those[i].last;
		from[0] = (char)(0xe0 | c >> 12);
		from[1] = (char)(0x80 | (c >> 6 & 0x3f));
		from[2] = (char)(0x80 | (c & 0x3f));
		snprintf(want, sizeof want, is ? "\\x%02x\\x%02x\\x%02x" : "%c%c%c", from[0] & 0xff,
			from[1] & 0xff, from[2] & 0xff);
		shown(from, want);
	}
	shown("\xd8\x9c", "\\xd8\\x9c"); /* the Arabic letter mark */
	shown("\xd8\x9b\xd8\x9d", "\xd8\x9b\xd8\x9d");
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
		cmocka_unit_test(what_turns_lines_around), cmocka_unit_test(no_utf8),
		cmocka_unit_test(short_of_room)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
