/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles, from the inside. */
#pragma once

#include "hca/api/hca.h"
#include "hca/seg/seg.h"

/* Copies where a datagram goes into its slot: the handle may be destroyed right after posting. */
void ah_fill(const struct ibv_ah *ah, uint32_t qpn, uint32_t qkey, struct seg_wqe *w);

/* Is this the address of a multicast group: ff00::/8, or IPv4-mapped 224.0.0.0/4? */
bool gid_is_multicast(const uint8_t *gid);

/* Where it stands in the port's table of GIDs, or -ENOENT: it is not of this host. */
int gid_find(const uint8_t *gid);

/*
 * The checks of a path's address: 0, -EINVAL port, GRH or sgid_index, -EHOSTUNREACH another
 * host.  *why says it in words.  unicast: a multicast group is refused too.
 */
int path_check(const struct ibv_ah_attr *attr, bool unicast, const char **why);
