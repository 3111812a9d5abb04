/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a GID of an Ethernet port says about itself: it is an IPv6 address, or an IPv4 address as
 * ::ffff:a.b.c.d.  All 16 bytes in network order; nothing blocks or fails.
 */
#pragma once

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { GID_BYTES = 16, GID_IPV4_AT = 12 }; /* where the IPv4 address begins */

/* Are they the same?  Where each datagram asks it: without a call. */
static inline bool gid_same(const uint8_t *a, const uint8_t *b)
{
	uint64_t x[2], y[2];

	memcpy(x, a, sizeof x);
	memcpy(y, b, sizeof y);
	return !((x[0] ^ y[0]) | (x[1] ^ y[1]));
}

/* Makes the bytes before an IPv4 address those of its GID. */
static inline void gid_put_ipv4_prefix(uint8_t *gid)
{
	static const uint8_t prefix[GID_IPV4_AT] = {[10] = 0xff, [11] = 0xff};

	memcpy(gid, prefix, sizeof prefix);
}

/* Is it an IPv4 address? */
static inline bool gid_is_ipv4(const uint8_t *gid)
{
	static const uint8_t prefix[GID_IPV4_AT] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid, prefix, sizeof prefix);
}

/* Is it an IPv6 address that is unique on its link alone, fe80::/10? */
static inline bool gid_is_link_local(const uint8_t *gid)
{
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

/* Is it in 127.0.0.0/8, or ::1? */
static inline bool gid_is_loopback(const uint8_t *gid)
{
	static const uint8_t one[GID_BYTES] = {[GID_BYTES - 1] = 1};

	return gid_is_ipv4(gid) ? gid[GID_IPV4_AT] == 127 : !memcmp(gid, one, sizeof one);
}

/* Is it a multicast group's, ff00::/8 or 224.0.0.0/4? */
static inline bool gid_is_multicast(const uint8_t *gid)
{
	return gid_is_ipv4(gid) ? gid[GID_IPV4_AT] >> 4 == 0xe : gid[0] == 0xff;
}

/* The address as text, which has room for INET6_ADDRSTRLEN; returns it. */
static inline const char *gid_text(const uint8_t *gid, char *text)
{
	const bool ipv4 = gid_is_ipv4(gid);

	return inet_ntop(
		ipv4 ? AF_INET : AF_INET6, ipv4 ? gid + GID_IPV4_AT : gid, text, INET6_ADDRSTRLEN);
}
