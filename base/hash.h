/* SPDX-License-Identifier: BSD-3-Clause */
/* A hash of words, against accidents alone: who wants two words of one hash finds them. */
#pragma once

#include <stdint.h>

/* One-to-one: different words have different hashes. */
static inline uint64_t hash_mix(uint64_t v)
{
	v += 0x9e3779b97f4a7c15ull;
	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ull;
	v = (v ^ v >> 27) * 0x94d049bb133111ebull;
	return v ^ v >> 31;
}
