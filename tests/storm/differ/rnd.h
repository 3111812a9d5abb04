/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers that a seed determines (splitmix64). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct rnd {
	uint64_t state;
};

static inline uint64_t rnd_next(struct rnd *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* The numbers of one thing among those of a seed. */
static inline struct rnd rnd_of(uint64_t seed, uint32_t a, uint32_t b, uint32_t c)
{
	struct rnd r = {seed};

	r.state = rnd_next(&r) ^ a;
	r.state = rnd_next(&r) ^ b;
	r.state = rnd_next(&r) ^ c;
	rnd_next(&r);
	return r;
}

/* 0 to n - 1; n > 0. */
static inline uint32_t rnd_below(struct rnd *r, uint32_t n)
{
	return (rnd_next(r) >> 16) % n;
}

/* lo to hi. */
static inline uint32_t rnd_range(struct rnd *r, uint32_t lo, uint32_t hi)
{
	return lo + rnd_below(r, hi - lo + 1);
}

/* True once in n. */
static inline bool rnd_once_in(struct rnd *r, uint32_t n)
{
	return rnd_below(r, n) == 0;
}
