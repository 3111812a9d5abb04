/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer clients of a process, for weftd to count.  A change of this file is a change of
 * SEG_VERSION. */
#pragma once

#include <stdint.h>

#include "base/atomic.h"

/* Clients that one process has shown, those that left among them; counters of each. */
enum { SEG_PEERS = 64, SEG_PEER_COUNTS = 16 };

/* One client.  The owner writes it; one that comes again counts on. */
struct seg_peer {
	_Atomic uint32_t shown; /* 1 once the names are there */
	uint32_t pad;
	char name[64];
	char version[16];
	_Atomic uint64_t count[SEG_PEER_COUNTS]; /* by enum peer_stat; they only grow */
};
