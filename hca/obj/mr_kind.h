/* SPDX-License-Identifier: BSD-3-Clause */
/* What regions are made of, as far as it matters to others: hca/mem/mr_kinds.h has the rows. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hca_mr;

/*
 * Memory that the CPU neither loads nor stores.  Offsets count from the region's first byte, and
 * what they name lies within it.  Each answers 0 or -errno: then the request fails as if that
 * memory were not there.  They are called by threads of ours in the region's process, several at a
 * time, with the signals blocked and little stack (some 100 KiB), and by the program's threads that
 * poll for datagrams or deregister.  They may wait for a device, but use no verbs: who deregisters
 * waits for them.
 */
struct mr_io {
	int (*read)(struct hca_mr *mr, uint64_t off, void *to, uint64_t n);
	/* Done with from when it returns.  Aligned 8 bytes are one call where they come alone. */
	int (*write)(struct hca_mr *mr, uint64_t off, const void *from, uint64_t n);
	/*
	 * All at once: adds a to the word at off, or puts b in its place if it is a; *old: what it
	 * was.  NULL: read and write, which is atomic among those that come through this process.
	 */
	int (*update)(
		struct hca_mr *mr, uint64_t off, bool add, uint64_t a, uint64_t b, uint64_t *old);
	/* What was written can be seen once this returns.  NULL: it can when write() returns. */
	int (*settle)(struct hca_mr *mr);
	/*
	 * Do they take no lock and wait for nothing, so that threads of the program that post or
	 * poll may call them, too?  Asked in any thread, of a region in use.  NULL: no.
	 */
	bool (*anywhere)(struct hca_mr *mr);
};

struct mr_kind {
	uint32_t flags;  /* enum seg_mr_flags of its entry in the segment */
	bool shares;     /* peers may map its pages, if that pays: hca/mem/share.h decides */
	bool wanders;    /* its addresses may lead to other pages at any time */
	bool changeable; /* can be re-registered and advised */
	bool swallows;   /* what is written to any address goes to hca_mr.of, and is never read */
	/* Its bytes: only these reach them, and flags is MR_OWNED.  NULL: memory at hca_mr.addr. */
	const struct mr_io *io;
	/* A peer client's: hca_mr.of is its struct peer_region, and it may go (hca/mem/mr_peer.h)
	 */
	bool client;
	/*
	 * What goes with the region, once nobody uses it.  NULL: nothing.  0; -errno: it did not
	 * go, the region can be deregistered again.
	 */
	int (*drop)(struct hca_mr *mr);
};
