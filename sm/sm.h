/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The built-in subnet manager: brings a subnet up, so that it needs none of others, keeps it so,
 * and gives way to others (sm/yield.h).  It writes to the nodes' agents directly.  No I/O, no
 * thread; the owner has the clock and calls sm_step() from its loop.  It has no subnet
 * administrator (SA).
 */
#pragma once

#include "sm/lids.h"
#include "subnet/subnet.h"

struct sm;

enum { SM_STEP_NS = 1000000 }; /* the budget that the owner's other clients can bear */

struct sm_ops {
	uint64_t (*now)(void *arg); /* ns */
	void *arg;
};

/*
 * Makes one for s.  lids has the LIDs of before, which are kept, and gets the new ones; it and s
 * are the caller's and outlive it.  off: it never does anything.  -ENOMEM.
 */
int sm_create(
	struct sm **out, struct subnet *s, struct lids *lids, const struct sm_ops *ops, bool off);
void sm_free(struct sm *sm);

/*
 * Works for at most that many ns, but at least one unit, if there is something to do.  True: the
 * owner calls it again at its next turn.
 */
bool sm_step(struct sm *sm, uint64_t budget);

/* When sm_step() has something to do: 1 now, 0 not before something changes, else a time. */
uint64_t sm_next(const struct sm *sm);

/* An issm file of the subnet was opened, or one was closed. */
void sm_issm_opened(struct sm *sm);
void sm_issm_closed(struct sm *sm);

/* What it does, for people: "off", "works", "gives way", or "comes back" in a moment. */
const char *sm_state_name(const struct sm *sm);

/*
 * A MAD on QP0 of a port.  True: it was for this subnet manager, and reply goes back to where mad
 * came from.  False while it does not work, or if the MAD is not for its port.
 */
bool sm_take(struct sm *sm, uint32_t node, uint8_t port, const uint8_t mad[MAD_SIZE],
	uint8_t reply[MAD_SIZE]);
