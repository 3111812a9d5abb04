/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What rules do to packets, one after the other: the same to the same packets with the same seed.
 * One thread at a time.
 */
#pragma once

#include "roce/fault/rules.h"

enum fault_act { FAULT_PASS, FAULT_LOSE, FAULT_TWICE, FAULT_HOLD, FAULT_FLIP };

/* A rule in use. */
struct fault_state {
	uint64_t random;
	uint64_t seen; /* packets that it is for */
	uint64_t done; /* ... to which it did something */
};

/* Rules in use. */
struct fault_set {
	struct fault_rules rules;
	struct fault_state state[FAULT_RULES];
};

/* How an act is to be carried out. */
struct fault_how {
	unsigned rule;    /* its number */
	uint64_t hold_ns; /* FAULT_HOLD: for so long, or */
	uint32_t behind;  /* ... until so many others have passed, if that is not 0 */
	size_t bit;       /* FAULT_FLIP: which one of the datagram, from its first byte's lowest */
};

/* Starts with rules; nothing has been seen. */
void fault_start(struct fault_set *, const struct fault_rules *);

/*
 * A packet, from its BTH to its ICRC, goes that way: what is to be done with it?  The first rule
 * that applies decides.  *how is valid if it is not FAULT_PASS.  Does not look at more than the
 * BTH; anything may be passed, however short.
 */
enum fault_act fault_on(struct fault_set *, enum fault_way, const uint8_t *packet, size_t len,
	struct fault_how *how);
