/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The timers of parked QPs: at most one per QP, ordered by time.  Pure logic; the caller owns
 * the clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TIMER_BUCKETS = 1024 };

struct timer {
	uint64_t when; /* CLOCK_MONOTONIC ns */
	uint32_t attach_id;
	uint32_t qp;
	size_t pos;          /* in the heap */
	struct timer *chain; /* same bucket */
};

struct timers {
	struct timer **heap; /* the earliest first */
	size_t count, room;
	struct timer *bucket[TIMER_BUCKETS];
};

/* Sets or moves the timer of a QP.  -ENOMEM. */
int timers_set(struct timers *t, uint32_t attach_id, uint32_t qp, uint64_t when);
/* When the earliest timer expires, 0 if there is none. */
uint64_t timers_next(const struct timers *t);
/* Takes the earliest timer out if it expired by now. */
bool timers_pop(struct timers *t, uint64_t now, uint32_t *attach_id, uint32_t *qp);
/* Drops all timers of a process. */
void timers_drop(struct timers *t, uint32_t attach_id);
