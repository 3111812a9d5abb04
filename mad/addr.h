/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a MAD goes, or came from. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
	MAD_GID = 16,
	MAD_LID_PERMISSIVE = 0xffff,
	MAD_HOPS = 64, /* Linux' hop limit, which a MAD that came over Ethernet shows */
};

/* A global route header's part of it. */
struct mad_grh {
	uint8_t local[MAD_GID], remote[MAD_GID]; /* GIDs, as we see them */
	uint32_t flow_label;
	uint8_t traffic_class, hop_limit;
};

/*
 * As one side sees it.  The fields that a link does not have (an Ethernet link has no LIDs, for
 * example) are 0.
 */
struct mad_addr {
	uint16_t lid;      /* of the other side */
	uint8_t path_bits; /* of our own LID */
	uint8_t sl;        /* service level */
	uint8_t port;      /* ours, from 1; 0: the only one */
	uint8_t qp;        /* ours: 0 or 1; of what is sent: the agent's, set by the layer */
	bool has_grh;
	uint16_t pkey_index; /* in our own table */
	uint32_t qpn;        /* of the other side: 0, 1, or who sent it */
	uint32_t qkey;       /* to be sent with */
	struct mad_grh grh;
};

/* Is it the same other side?  By GIDs where both have them, else by LIDs. */
static inline bool mad_same_peer(const struct mad_addr *a, const struct mad_addr *b)
{
	if (a->has_grh != b->has_grh)
		return false;
	return a->has_grh ? memcmp(a->grh.remote, b->grh.remote, MAD_GID) == 0 : a->lid == b->lid;
}

/* Is it the same address of ours?  By GIDs where both have them, else by the LMC path bits. */
static inline bool mad_same_own(const struct mad_addr *a, const struct mad_addr *b, unsigned lmc)
{
	if (a->has_grh != b->has_grh)
		return false;
	if (a->has_grh)
		return memcmp(a->grh.local, b->grh.local, MAD_GID) == 0;
	return !((a->path_bits ^ b->path_bits) & ((1u << lmc) - 1));
}

/* Between the QP1 of two GIDs of a link without LIDs. */
static inline struct mad_addr mad_addr_of_gids(
	const uint8_t local[MAD_GID], const uint8_t remote[MAD_GID])
{
	struct mad_addr a = {.qp = 1, .qpn = 1, .has_grh = true};

	memcpy(a.grh.local, local, MAD_GID);
	memcpy(a.grh.remote, remote, MAD_GID);
	return a;
}

/* It came over an Ethernet link, which carries no more than GIDs, traffic class and QPs. */
static inline void mad_addr_by_ethernet(struct mad_addr *from)
{
	from->lid = 0;
	from->path_bits = 0;
	from->sl = 0;
	from->grh.flow_label = 0;
	from->grh.hop_limit = MAD_HOPS;
}
