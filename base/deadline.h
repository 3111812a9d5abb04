/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A heap of points in time, embedded in what they belong to.  Pure logic; the caller owns the
 * clock.  A zeroed struct deadline is not set.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct deadline {
	uint64_t when; /* ns */
	size_t pos;    /* in the heap + 1; 0 = not set */
};

struct deadlines {
	struct deadline **heap; /* the earliest first */
	size_t count, room;
};

/* The earlier of two points in time, of which 0 is never. */
static inline uint64_t deadline_earlier(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

/* Sets or moves d.  -ENOMEM, only if it was not set. */
int deadline_set(struct deadlines *h, struct deadline *d, uint64_t when);

/* Unsets d; harmless if it is not set. */
void deadline_clear(struct deadlines *h, struct deadline *d);

/* When the earliest one passes, 0 if none is set. */
uint64_t deadline_next(const struct deadlines *h);

/* Unsets and returns the earliest one if it passed by now, else NULL. */
struct deadline *deadline_pop(struct deadlines *h, uint64_t now);

/* Frees the heap itself. */
void deadlines_free(struct deadlines *h);
