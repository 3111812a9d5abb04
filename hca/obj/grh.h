/* SPDX-License-Identifier: BSD-3-Clause */
/* The 40 bytes before the payload of a datagram, but for its length: hca/run/grh.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hca/seg/seg.h"

struct grh {
	uint8_t bytes[SEG_GRH_BYTES]; /* without the length, and the checksum of IPv4 */
	uint32_t sum;                 /* IPv4: of the header without the length */
	bool ipv4;
};
