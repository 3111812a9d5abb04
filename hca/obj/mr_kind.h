/* SPDX-License-Identifier: BSD-3-Clause */
/* What regions are made of, as far as it matters to others: hca/mem/mr_kinds.h has the rows. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hca_mr;

struct mr_kind {
	uint32_t flags;  /* enum seg_mr_flags of its entry in the segment */
	bool shares;     /* peers may map its pages, if that pays: hca/mem/share.h decides */
	bool wanders;    /* its addresses may lead to other pages at any time */
	bool changeable; /* can be re-registered and advised */
	bool swallows;   /* what is written to any address goes to hca_mr.of, and is never read */
	/* A peer client's: hca_mr.of is its struct peer_region, and it may go (hca/mem/mr_peer.h)
	 */
	bool client;
	/*
	 * What goes with the region, once nobody uses it.  NULL: nothing.  0; -errno: it did not
	 * go, the region can be deregistered again.
	 */
	int (*drop)(struct hca_mr *mr);
};
