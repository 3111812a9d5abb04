/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process whose memory is under the simulator, where it makes some of it durable itself.  Its
 * regions are those that the journal has of it, so nothing of the adapter is needed.
 */
#pragma once

#include "crash/journal.h"

/* Regions of this process, as far as the journal has been read.  All zero at first. */
struct crash_owner {
	struct journal j;
	uint64_t read; /* records before this one were looked at ... */
	uint64_t calm; /* ... and before this one no write is under way any more */
	struct crash_range {
		uint64_t addr, len;
	} * ranges;
	unsigned n, max;
};

/*
 * This process has made [addr, addr+len) durable, as it is there: a record of the parts of it that
 * are under the simulator.  Bytes and record belong together: waits, for 100 ms at most, for writes
 * that are under way, and begins anew when one came between.  Not thread safe.
 */
void crash_owner_persist(struct crash_owner *o, uint64_t addr, uint64_t len);

/* Looks for new regions of this process. */
void crash_owner_refresh(struct crash_owner *o);
