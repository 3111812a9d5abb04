/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions of peer clients' memory (docs/peermem.md): direct, memory at addresses of this process
 * that stays until it is deregistered, or owned, what only mr_peer_io reaches and the client may
 * take away.  hca_mr.of is their struct peer_region.
 */
#pragma once

#include "hca/obj/mr.h"
#include "peermem/region.h"

extern const struct mr_io mr_peer_io;

/*
 * Asks the clients whose the range of r is; they may take their time.  1: r has address, kind and
 * of; mr_peer_live() or mr_peer_abandon() must follow in this thread.  0: nobody's.  -errno, which
 * is in the log: what the client answered; -EINVAL that was garbage, or access asks for pages on
 * demand; -EFAULT there is no such memory; -ENOMEM.  Either way t has who was asked.
 */
int mr_peer_claim(struct mr_region *r, struct peer_trace *t);

/*
 * The region was added with what mr_peer_claim() found: from now on its client may take the memory
 * away.  -EINVAL: it did already; the region is to be deregistered.
 */
int mr_peer_live(struct hca_mr *mr);

/* Instead: gives back what was claimed. */
void mr_peer_abandon(const struct mr_region *r);

/* Where the program registered it. */
uint64_t mr_peer_addr(const struct hca_mr *mr);

/* Did its client take it away?  A guess, but for who holds mr->lock. */
bool mr_peer_gone(const struct mr_region *r);

/*
 * Its key is gone, it is an owned one: waits until no thread of this process is in one of its
 * functions, or has found it and may come into one.  0; -EDEADLK in such a function; -ETIMEDOUT: a
 * thread stayed inside for 10 s, which the log has: it may be waiting for a lock of our caller's.
 */
int mr_peer_await(struct hca_mr *mr);

/*
 * Nobody uses the region any more: gives the memory back.  Waits for the client's callbacks.  0;
 * -EDEADLK in a function of the client about this very region; -ETIMEDOUT: one did not end in 10 s.
 */
int mr_peer_drop(struct hca_mr *mr);

/* The parent's, in a forked child. */
void mr_peer_forget(struct hca_mr *mr);

/* As mr_peer_drop(), of what it was before it became another; what does not go is left. */
void mr_peer_drop_old(struct hca_mr *mr, const struct mr_region *old);
