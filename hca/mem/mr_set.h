/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory regions of this process by address: a treap of intervals of whole pages, in which
 * those that overlap a range are found without looking at the others.  The caller locks.
 */
#pragma once

#include "hca/obj/srq.h"

struct mr_set {
	struct hca_mr *root;
	uint32_t seed;
};

/* mr->lo and mr->hi are set, and stay while it is in the set. */
void mr_set_add(struct mr_set *s, struct hca_mr *mr);
void mr_set_del(struct mr_set *s, struct hca_mr *mr);

/*
 * Calls fn for each region that overlaps [lo, hi), in the order of their beginnings, until it
 * returns false.  fn must not change the set.
 */
void mr_set_each(const struct mr_set *s, uint64_t lo, uint64_t hi,
	bool (*fn)(struct hca_mr *mr, void *arg), void *arg);
