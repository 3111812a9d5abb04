// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/pattern.h"

uint8_t pattern_byte(uint32_t seed, size_t i)
{
	uint64_t x = (i + 1) * 0x9e3779b97f4a7c15ull + seed * 0xbf58476d1ce4e5b9ull;

	return x >> 56;
}

void pattern_fill(uint8_t *p, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = pattern_byte(seed, i);
}

size_t pattern_match(const uint8_t *p, size_t len, uint32_t seed)
{
	size_t i = 0;

	while (i < len && p[i] == pattern_byte(seed, i))
		i++;
	return i;
}

bool pattern_filled(const uint8_t *p, size_t len, uint32_t seed)
{
	return pattern_match(p, len, seed) == len;
}

bool pattern_all(const uint8_t *p, size_t len, uint8_t c)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != c)
			return false;
	return true;
}
