/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a thread looks for what it waits for before it sleeps.
 *
 * Two programs that answer each other at once, and have fallen asleep, take longer to wake each
 * other than they look before they sleep, for ever.  So who was woken soon looks for longer the
 * next time, and, where that was in vain, not again for a number of sleeps that doubles.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { LOOK_NS = 10000, LOOK_LONG_NS = 60000 };

/* What was learnt of one thing that is waited for; zeros at first.  The caller locks. */
struct look {
	bool longer;   /* the next time */
	uint32_t wins; /* times in a row that that was not in vain */
	uint32_t debt; /* sleeps until it may be again */
	uint32_t fails;
};

/* A wait begins: how many ns to look; `usual`, or longer, or what WEFT_SPIN_US says (spin.h). */
uint64_t look_begins(struct look *l, uint64_t usual);

/* That was in vain: the thread is about to sleep.  Harmless if it did not look. */
void look_failed(struct look *l);

/* It slept for so many ns. */
void look_slept(struct look *l, uint64_t ns);
