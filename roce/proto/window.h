/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much a requester has under way, and how long it waits: a window of PSNs that doubles as TCP's
 * does (RFC 5681), and a timer from the smoothed round trip (RFC 6298).  Pure functions.
 *
 * A loss takes a quarter of the window, which comes back in five round trips; a packet that is
 * missing alone takes a sixteenth: so a loss now and then leaves it wide, and a queue that
 * overflows in each round trip still empties.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	WINDOW_MIN = 4,
	WINDOW_START = 16,
	WINDOW_MAX = 256,
	WINDOW_BYTES = 256 << 10,
};

struct rc_window {
	uint32_t psns;      /* may be under way */
	uint32_t limit;     /* psns never grows beyond */
	uint32_t threshold; /* below it the window doubles with each round trip */
	uint32_t counted;   /* acknowledged since it last grew, above the threshold */
	uint64_t rtt;       /* ns, smoothed; 0: none was measured */
	uint64_t variance;  /* ns */
};

/* For packets of that many bytes. */
void window_start(struct rc_window *, uint32_t mtu);

/* So many PSNs were acknowledged for the first time. */
void window_acked(struct rc_window *, uint32_t psns);

/* Packets were lost, or the path is congested: at most once per round trip. */
void window_lost(struct rc_window *);

/* One was lost among others that came: at most four times per round trip, which is as the above. */
void window_missed(struct rc_window *);

/* A round trip took so long, ns. */
void window_measured(struct rc_window *, uint64_t rtt);

/*
 * How long to wait for an answer before asking, ns; at least 1 ms: each deadline that comes wakes
 * the watcher, beside a program that may look itself.
 */
uint64_t window_patience(const struct rc_window *);
