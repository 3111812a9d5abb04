/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The invariant CRC of RoCEv2 packets (annex A17.3.3): CRC-32 over 8 bytes of ones, the IP and UDP
 * headers, the BTH, the other headers, payload and padding, with all fields that change on the way
 * taken as ones; written little endian.
 *
 * A UDP socket does not show the identification of an IPv4 packet, which is covered.  A CRC is
 * linear: the difference to the CRC for identification 0 is the image of these 16 bits, so they
 * can be found; the other 16 bits of the CRC still check.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/roce.h"

/* Between which addresses and ports a packet goes; an IPv4 address is the last 4 of the 16 bytes.
 */
struct icrc_path {
	bool ipv6;
	uint8_t src[16], dst[16];
	uint16_t src_port, dst_port;
};

/*
 * Starts with the pseudo headers and the packet's own: `head_len` bytes from the BTH on, of a
 * datagram of `udp_payload` bytes, ICRC included; `ip_id` is the IPv4 identification.
 */
uint32_t icrc_begin(const struct icrc_path *, uint16_t ip_id, size_t udp_payload,
	const uint8_t *head, size_t head_len);

/* Goes on over n more bytes: payload, padding. */
uint32_t icrc_add(uint32_t crc, const void *bytes, size_t n);

/* As it stands at the end of a packet. */
void icrc_put(uint32_t crc, uint8_t out[ROCE_ICRC_LEN]);

/*
 * Is the ICRC at the end of a datagram right for what a socket saw of it?  *id is the IPv4
 * identification that was expected, and becomes the one that was found; IPv6 does not look at it.
 * The path's addresses are the packet's, source first.
 */
bool icrc_check(const struct icrc_path *, const uint8_t *datagram, size_t len, uint16_t *id);

/*
 * Finds the identification from the difference of two ICRCs over packets that differ in it alone;
 * `behind` is how many bytes follow it up to the ICRC.  False: no identification makes it.
 */
bool icrc_solve_id(uint32_t difference, size_t behind, uint16_t *id);
