/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The GID table of an Ethernet port: which address lies at which index.  Pure logic.
 *
 *   0      the link-local address of the port's link, if it has one, else fe80::/64 with the
 *          node GUID
 *   1      the first IPv4 address that is not loopback, else 127.0.0.1; never an IPv6 address
 *   2...   all others; 127.0.0.1 and ::1 are always somewhere
 *
 * An index keeps its address while the address lasts; one that goes leaves an empty entry,
 * and a new one takes the first free index.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/page.h"

enum { GID_TYPE_ROCE_V2 = 2 }; /* enum ibv_gid_type */

/* An address of this host.  IPv4 comes as ::ffff:a.b.c.d. */
struct gid_addr {
	uint8_t raw[16];
	uint32_t ifindex;
	uint32_t mtu; /* of the interface, 0: not known */
	char ifname[16];
	bool loopback; /* of the interface */
};

/* Makes the IPv4-mapped GID of an address in network order. */
void gid_from_ipv4(uint8_t raw[16], const void *ipv4);

/*
 * The address whose interface is the link of the port: the first IPv4 address of one that is not
 * loopback.  NULL: there is none, the port is loopback.
 */
const struct gid_addr *gid_main_ipv4(const struct gid_addr *addrs, size_t n);

/*
 * Brings the table of port up to date with the n addresses in addrs, in order of preference.
 * node_guid in network order.  Returns how many addresses found no room.
 */
size_t gid_table_update(
	struct fabric_port *port, uint64_t node_guid, const struct gid_addr *addrs, size_t n);
