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

/* The one of a datagram with so many bytes of payload. */
void grh_write(const struct grh *g, size_t payload, bool has_imm, uint8_t to[SEG_GRH_BYTES]);
