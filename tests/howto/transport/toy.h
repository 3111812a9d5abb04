/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A far end: RC queue pairs of two processes, joined by a socket pair.  docs/howto/new-transport.md
 * explains each step.
 */
#pragma once

#include <stdint.h>

enum toy_counter {
	TOY_PIECES, /* sent */
	TOY_RNRS,   /* messages that came back because there was no receive */
	TOY_AHEAD,  /* the most requests that were sent and not completed, at once */
	TOY_FULL,   /* times that the socket had no room */
	TOY_COUNTERS,
};

/* The address of the other process. */
extern const uint8_t toy_gid[16];

/*
 * From now on RC queue pairs of this process whose path leads to toy_gid are joined with their
 * other ends by fd, one of a pair of SOCK_SEQPACKET; those with a shared receive queue are refused.
 * 0 or a negative errno.
 */
int toy_open(int fd);

/* The opposite; all such queue pairs are gone. */
void toy_close(void);

unsigned toy_count(enum toy_counter which);
