/* SPDX-License-Identifier: BSD-3-Clause */
/* The 40 bytes before the payload of a datagram: hca/run/grh.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hca/seg/seg.h"

struct grh {
	uint8_t bytes[SEG_GRH_BYTES];
	uint32_t of;  /* of what message the length is there: grh_message() */
	uint32_t sum; /* IPv4: of the header without the length */
	bool ipv4;
};
