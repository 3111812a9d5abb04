/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The header that a receiver of a datagram finds before the payload: a GRH, which is the header of
 * IPv6, or 20 zero bytes and a header of IPv4.
 */
#pragma once

#include <stddef.h>

#include "hca/obj/grh.h"

/*
 * Of datagrams between two GIDs: IPv4 if both are such addresses.  flow: traffic class << 20 | flow
 * label; hops 0: the usual number.
 */
void grh_make(struct grh *g, const uint8_t *sgid, const uint8_t *dgid, uint32_t flow, uint8_t hops);

/* Puts the length, and the checksum of IPv4, of such a message into it. */
void grh_set_length(struct grh *g, uint32_t payload, bool has_imm);

/* A message by what its length follows from; never 0. */
static inline uint32_t grh_message(uint32_t payload, bool has_imm)
{
	return (payload << 1 | has_imm) + 1;
}

/* The SEG_GRH_BYTES of a datagram with so many bytes of payload, until the next is asked for. */
static inline const uint8_t *grh_of(struct grh *g, uint32_t payload, bool has_imm)
{
	if (g->of != grh_message(payload, has_imm))
		grh_set_length(g, payload, has_imm);
	return g->bytes;
}
