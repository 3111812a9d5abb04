// SPDX-License-Identifier: BSD-3-Clause
#include "base/text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { DEL = 0x7f, C1_END = 0xa0, ESCAPE_LEN = 4 };

/* How many bytes the character at p takes, with its value in *c; 0: it is no UTF-8. */
static size_t decode(const unsigned char *p, size_t left, uint32_t *c)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = *p < 0x80 ? 1 : *p >> 5 == 6 ? 2 : *p >> 4 == 14 ? 3 : *p >> 3 == 30 ? 4 : 0;

	if (!n || n > left)
		return 0;
	*c = n == 1 ? *p : *p & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if (p[i] >> 6 != 2)
			return 0;
		*c = *c << 6 | (p[i] & 0x3f);
	}
	return *c >= least[n] && *c <= 0x10ffff && *c >> 11 != 0x1b ? n : 0;
}

/* Those that change what stands around them belong here, too: direction, lines, paragraphs. */
static int is_control(uint32_t c)
{
	return c < ' ' || (c >= DEL && c < C1_END) || c == 0x61c || (c >= 0x200e && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

size_t text_escape(char *to, size_t size, const char *from, size_t len)
{
	const unsigned char *p = (const unsigned char *)from, *end = p + len;
	size_t at = 0;

	while (p < end) {
		uint32_t c = 0;
		size_t n = decode(p, end - p, &c);
		int plain = n && !is_control(c);

		n = n ? n : 1;
		if (at + (plain ? n : ESCAPE_LEN * n) >= size)
			break;
		if (plain)
			memcpy(to + at, p, n);
		else
			for (size_t i = 0; i < n; i++)
				sprintf(to + at + ESCAPE_LEN * i, "\\x%02x", p[i]);
		at += plain ? n : ESCAPE_LEN * n;
		p += n;
	}
	to[at] = '\0';
	return at;
}
