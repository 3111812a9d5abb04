/* SPDX-License-Identifier: BSD-3-Clause */
/* The path of a connected queue pair in the segment. A change of this file is a change of
 * SEG_VERSION. */
#pragma once

#include <stdint.h>

/* Where requests go, as the program said it on the way to RTR, and what was found out about it. */
struct seg_path {
	uint8_t sgid[16], dgid[16];
	uint32_t flow;       /* traffic class << 20 | flow label, as in the header of IPv6 */
	uint32_t interface;  /* number of the network interface; 0: the other end is on this host */
	uint16_t udp_source; /* port of RoCE v2 packets; 0 if there will be none */
	uint8_t hop_limit;   /* 0: the usual one */
	uint8_t mtu;         /* enum ibv_mtu: the most that the way there takes */
	uint8_t beside;      /* the other end is of another fabric on this host (roce/beside.h) */
	uint8_t pad[3];
};

enum { PATH_TCLASS_SHIFT = 20 };

/* Bytes of an enum ibv_mtu, and their logarithm, whatever a peer has stored there. */
static inline unsigned seg_mtu_log(unsigned code)
{
	return 7 + (code & 7);
}

static inline uint32_t seg_mtu_bytes(unsigned code)
{
	return 1u << seg_mtu_log(code);
}
