/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When the built-in subnet manager works.  It takes no part in elections: while a program has an
 * issm file of the subnet open, which says "a subnet manager runs here", it neither writes nor
 * answers; it comes back YIELD_GRACE_NS after the last one was closed.  Pure logic; the caller has
 * the clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define YIELD_GRACE_NS NSEC_PER_SEC

enum yield_state {
	YIELD_NEVER, /* sm=off */
	YIELD_WORKS,
	YIELD_AWAY,  /* somebody else may be there */
	YIELD_GRACE, /* nobody is, since a short time */
};

struct yield {
	enum yield_state state;
	unsigned open; /* issm files */
	uint64_t back; /* YIELD_GRACE: when it comes back */
};

/* off: it never works. */
struct yield yield_begin(bool off);

/* An issm file was opened, or closed. */
void yield_opened(struct yield *y);
void yield_closed(struct yield *y, uint64_t now);

/* Whether it comes back at that time; it works then. */
bool yield_returns(struct yield *y, uint64_t now);
