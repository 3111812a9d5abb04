/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the packets of a connected queue pair come from.  Weft sends all of its packets from UDP
 * port 4791, which an adapter uses for none: theirs have the upper two bits set, and may change at
 * any time.  So a peer whose packets fit in, and come from that port, is Weft, and what comes from
 * another one is somebody else's.  On the peer's host the port is taken; docs/trust-packets.md has
 * who can send from it all the same.
 *
 * Pure functions; all zero to begin with.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { ORIGIN_ROW = 64 };

struct origin {
	bool weft;     /* that is known for good */
	uint16_t port; /* of the last packet that fitted in; 0: none did */
	uint8_t row;   /* UC: how many did in a row that came from Weft's port */
};

enum origin_verdict {
	ORIGIN_KNOWN,
	ORIGIN_OTHER,  /* another port than before */
	ORIGIN_FORGED, /* the peer is Weft, and that is not its port */
};

enum origin_verdict origin_of(const struct origin *, uint16_t port);

/*
 * A packet of that port was the very one that was expected, or answered what nothing had answered
 * yet.  The first decides; on UC, where one that fits in shows nothing, ORIGIN_ROW in a row.
 */
void origin_fits(struct origin *, uint16_t port, bool unreliable);
