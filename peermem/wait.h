/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for another thread of this process, with an end. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define PEER_TELL_NS    (1 * NSEC_PER_SEC)  /* then the log says who waits for whom */
#define PEER_GIVE_UP_NS (10 * NSEC_PER_SEC) /* then -ETIMEDOUT */

/* A clock, and how to sleep by it while *word is seen, at most ns; it may return early. */
struct peer_time {
	uint64_t (*now)(void);
	void (*sleep)(_Atomic uint32_t *word, uint32_t seen, uint64_t ns);
};

/* Takes another clock, for tests; NULL: the monotonic one. */
void peer_time_use(const struct peer_time *t);

/* A wait begun at some time. */
struct peer_wait {
	uint64_t begun;
	bool told; /* for the caller */
};

/* Begins a wait. */
struct peer_wait peer_wait_begin(void);

/* ns since then. */
uint64_t peer_waited(const struct peer_wait *w);

/* Sleeps until *word is no longer seen, or till_ns after the beginning; may return early. */
void peer_wait_more(
	const struct peer_wait *w, _Atomic uint32_t *word, uint32_t seen, uint64_t till_ns);

/* Counts *word up and wakes all that sleep on it. */
void peer_wake(_Atomic uint32_t *word);
