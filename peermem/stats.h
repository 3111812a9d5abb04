/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is counted of a client: the eight files of /sys/kernel/mm/memory_peers/NAME/ (version and
 * seven counters, which only ever grow), and what the kernel does not count.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum peer_stat {
	PEER_ALLOC_MRS,
	PEER_DEALLOC_MRS, /* at unmap, by invalidation too */
	PEER_REG_PAGES,
	PEER_DEREG_PAGES,
	PEER_REG_BYTES,
	PEER_DEREG_BYTES,
	PEER_FREE_CALLBACKS, /* calls of the callback, whatever came of them */
	PEER_KERNEL_STATS,
	PEER_STALE = PEER_KERNEL_STATS, /* callbacks whose context names no region of the client */
	PEER_DEADLOCKS,                 /* waits given up, and callbacks answered -EDEADLK */
	PEER_FAILED,                    /* registrations that failed after acquire */
	PEER_STATS
};

enum { PEER_STAT_FILES = PEER_KERNEL_STATS + 1 };

struct peer_client;

struct peer_stats {
	_Atomic uint64_t count[PEER_STATS];
	_Atomic uint64_t *_Atomic mirror; /* the same, for others to read; NULL: none */
	uint64_t before[PEER_STATS];      /* what stood there: of one of that name who left */
};

/* From now on the counters stand in to as well, which has PEER_STATS, beyond what is there. */
void peer_stats_mirror(struct peer_stats *s, _Atomic uint64_t *to);

/* Adds n.  From any thread. */
void peer_count(struct peer_stats *s, enum peer_stat which, uint64_t n);

/* All are 0 again, without a mirror; where nobody counts. */
void peer_stats_reset(struct peer_stats *s);

uint64_t peer_counted(const struct peer_stats *s, enum peer_stat which);

/* The name of file i, below PEER_STAT_FILES, or of counter i - 1 above that; NULL beyond. */
const char *peer_stat_name(unsigned i);

/*
 * Writes what file i of the client holds, "%llu\n" or its version and a newline, into to, of size
 * bytes; returns the length as snprintf() does.
 */
int peer_stat_print(const struct peer_client *c, unsigned i, char *to, size_t size);
