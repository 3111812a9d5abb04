/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What weftd and those who have a umad file share of it: a page of the file, and a lane of each
 * process that uses it.  Both are memory of which only what was touched exists.
 */
#pragma once

#include "mad/bell.h"
#include "mad/ring.h"
#include "mad/tids.h"

enum umad_page_state {
	UMAD_PAGE_PKEY = 1, /* headers have the new layout */
	UMAD_PAGE_GONE = 2, /* the device was removed, or all have closed the file */
	UMAD_PAGE_USED = 8, /* something was registered: the layout stays what it is */
	UMAD_PAGE_GRH = 4,  /* an Ethernet port: no address is good without a GRH */
};

/* Of a file; weftd alone writes what stands before the ring. */
struct umad_page {
	_Atomic uint32_t state; /* enum umad_page_state */
	_Atomic uint32_t held;  /* weftd keeps received MADs back: mad/ring.h */
	_Alignas(CACHE_LINE) _Atomic uint64_t agent[UMAD_AGENTS]; /* umad_agent_word() */
	struct ring_ends recv;                                    /* with its bell: mad/bell.h */
	struct tids tids;
	struct ring_slot recv_slot[1 << UMAD_RECV_LOG_SIZE];
};

/* Of a process; weftd writes head and end and clears knocked, the process the rest. */
struct umad_lane {
	_Alignas(CACHE_LINE) _Atomic uint32_t knocked; /* of the send ring: mad/ring.h */
	_Atomic uint32_t settled; /* claims on the page's bell that were overridden: mad/bell.h */
	_Atomic uint32_t ended;   /* weftd looks at it no more: join the file again */
	_Atomic uint32_t prompt;  /* who writes is who reads, and so waits for the answer */
	_Atomic uint32_t looking; /* a thread looks for a MAD just now: it needs no byte */
	struct ring_ends send;
	struct ring_slot send_slot[1 << UMAD_SEND_LOG_SIZE];
};
