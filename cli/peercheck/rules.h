/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rules for peer clients, and which of them is broken by what a scenario of some family saw.
 * docs/peercheck.md has them at length.
 */
#pragma once

#include <stdbool.h>

enum { RULES = 22 };

/* Groups of scenarios, each asking for more than those before it. */
enum family {
	FAMILY_LOAD,    /* init and exit */
	FAMILY_ACQUIRE, /* whose memory it is */
	FAMILY_REGION,  /* lives of regions in which nothing goes wrong */
	FAMILY_NTH,     /* one call that the client makes fails */
	FAMILY_KEEP,    /* memory freed under a client without callback */
	FAMILY_TAKE,    /* the device takes the memory of live regions */
	FAMILY_POINT,   /* ... in the middle of anything */
	FAMILY_THREADS, /* another region lives meanwhile */
	FAMILY_STORM,   /* threads, as they come */
	FAMILIES,
};

/* What can be seen to go wrong anywhere. */
enum seen {
	SEEN_CRASH,
	SEEN_HANG,
	SEEN_STALE,  /* a call about what is not pinned any more */
	SEEN_MEMORY, /* memory freed twice, or written beyond its end */
	SEEN_PINNED, /* what follows: left when all is undone */
	SEEN_OBJECTS,
	SEEN_MODULES,
	SEEN_KINDS,
};

/* What the client is to do, for a rule from 1 to RULES. */
const char *rule_text(unsigned rule);

/* The families that look at it, as bits. */
unsigned rule_families(unsigned rule);

/* The rule that a scenario of that family found broken; in: the client's function, or NULL. */
unsigned rule_broken(enum family family, enum seen what, const char *in);

/*
 * The rule that counts where a scenario of that family finds another broken: what goes well by
 * itself, and not among threads, is a matter of threads.
 */
unsigned rule_in_family(enum family family, unsigned rule);

/* The families are run in stages: what breaks a rule in one is not asked for the next. */
unsigned family_stage(enum family family);

/* But for these, which are about several threads. */
bool family_is_race(enum family family);

/* The name of a family, as in IDs. */
const char *family_name(enum family family);
