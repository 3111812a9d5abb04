/* SPDX-License-Identifier: BSD-3-Clause */
/* Hashes against accidents alone: who wants two inputs of one hash finds them. */
#pragma once

#include <stdint.h>
#include <string.h>

/* One-to-one: different words have different hashes. */
static inline uint64_t hash_mix(uint64_t v)
{
	v += 0x9e3779b97f4a7c15ull;
	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ull;
	v = (v ^ v >> 27) * 0x94d049bb133111ebull;
	return v ^ v >> 31;
}

/* Of bytes, with a seed.  A change within 8 bytes at a multiple of 8, and nowhere else, shows. */
static inline uint64_t hash_bytes(const void *bytes, uint64_t len, uint64_t seed)
{
	uint64_t h = hash_mix(seed ^ len), word;

	for (; len >= sizeof word; len -= sizeof word, bytes = (const char *)bytes + sizeof word) {
		memcpy(&word, bytes, sizeof word);
		h = hash_mix(h ^ word);
	}
	word = 0;
	memcpy(&word, bytes, len);
	return hash_mix(h ^ word);
}
