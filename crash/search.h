/* SPDX-License-Identifier: BSD-3-Clause */
/* Looking for an image that a program cannot recover from, and for the least that breaks it. */
#pragma once

#include "crash/model.h"

/* Exhaustive means so many images of one point at most. */
enum { CRASH_EXHAUSTIVE_MAX = 1 << 20 };

struct crash_set;

struct crash_search {
	/* Images of one point to look at, at most, if there are more of them. */
	uint64_t images;
	bool exhaustive; /* all of them, or -E2BIG */
	bool random;     /* none but random ones */
	uint64_t seed;
	/*
	 * Can the program recover from the image in which those pending words of s are kept for
	 * which keep[] is not 0?  0 yes, 1 no, negative errno: it cannot be told, the search ends.
	 */
	int (*check)(
		void *arg, const struct crash_state *s, struct crash_point at, const uint8_t *keep);
	void *arg;
	/* results, over all points */
	uint64_t points, checked;
	bool sampled;          /* some point had more images than were looked at */
	struct crash_set *set; /* images that were found good; crash_search_end() frees it */
};

/* What becomes of a pending word in the image that crash_search_point() finds. */
enum crash_keep {
	CRASH_NOT_KEPT, /* lost, or hidden by a later one of that word */
	CRASH_KEPT,
	CRASH_EITHER, /* kept; with all the words lost that are so marked, it breaks as well */
};

/*
 * Looks at images of s, the state at point `at`.  1: *keep (to be freed by the caller), of enum
 * crash_keep, is one from which the program does not recover, with as few writes lost, and of these
 * as few words, as was found; and of the other writes as few that have to be kept.  0: none.
 * -E2BIG, -ENOMEM, or what check() answered.
 */
int crash_search_point(
	struct crash_search *q, struct crash_state *s, struct crash_point at, uint8_t **keep);

void crash_search_end(struct crash_search *q);

/* How many images are possible: at most UINT64_MAX. */
uint64_t crash_images(struct crash_state *s);

/* Marks the pending words in lost that are lost, and not just older than another that is kept. */
void crash_find_lost(struct crash_state *s, const uint8_t *keep, uint8_t *lost);
