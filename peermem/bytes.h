/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of a live region, wherever its pieces lie: copied for addresses of this process, by the
 * functions of DMA windows for others.  Offsets count from the address that the program registered;
 * what they name lies within the region.  Each is an operation of the region (peer_region_enter()):
 * whoever takes the memory away waits for it, but for no more than the call of a function that runs
 * just then.  They may block as those functions do.
 *
 * 0; -ENOENT: the memory was taken away, before or meanwhile; else what a function answered (one
 * that is no errno is -EIO).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct peer_region;

int peer_bytes_read(struct peer_region *r, uint64_t off, void *to, uint64_t n);

/* Seen by all once peer_bytes_flush() has returned; in order, as copy_ordered(), where copied. */
int peer_bytes_write(struct peer_region *r, uint64_t off, const void *from, uint64_t n);
int peer_bytes_flush(struct peer_region *r);

/*
 * All at once: adds a to the word at off, or puts b in its place if it is a; *old: what it was. The
 * caller holds the process's atomic word: where the window has no function for it that makes it
 * atomic among requests.
 */
int peer_bytes_update(
	struct peer_region *r, uint64_t off, bool add, uint64_t a, uint64_t b, uint64_t *old);
