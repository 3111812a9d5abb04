/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of an RC queue pair that came ahead of one that was lost: kept until that one has come
 * again, so that the requester need not send them twice.  Anybody may have sent them: what is kept
 * is taken only where the requester says that it filled a gap (roce/proto/responder.h).  All zero:
 * none.  One thread at a time for all queue pairs, which share a small store of memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AHEAD_MAX = 256 }; /* PSNs */

struct ahead {
	struct ahead_packet *slot; /* by PSN; NULL before the first */
	uint32_t end;              /* one beyond the last PSN of those that were kept */
	bool used;                 /* `end` means something */
	uint64_t passed;           /* counts those that were kept in vain */
};

/*
 * Keeps a copy of a packet with that PSN, which is not `expected` yet.  False: it is too far ahead,
 * or there is no memory; it is lost then, and so is one of the same PSN that holds something else:
 * one of them is not the requester's.
 */
bool ahead_put(struct ahead *a, uint32_t expected, uint32_t psn, const uint8_t *bytes, size_t n);

/*
 * The packet of that PSN, which is expected now; NULL: it is not there.  The caller gives it to
 * ahead_free().
 */
uint8_t *ahead_take(struct ahead *a, uint32_t psn, size_t *n);

/* That PSN came in another way. */
void ahead_pass(struct ahead *a, uint32_t psn);

/* That one is expected now: when nothing lies beyond, all is forgotten, as PSNs come round. */
void ahead_expect(struct ahead *a, uint32_t psn);

/* The packet is needed no more; NULL: nothing happens. */
void ahead_free(uint8_t *bytes);

/* Is that packet kept? */
bool ahead_has(const struct ahead *a, uint32_t psn);

/* Is something kept that lies beyond that PSN? */
bool ahead_beyond(const struct ahead *a, uint32_t psn);

/* Frees all. */
void ahead_clear(struct ahead *a);
