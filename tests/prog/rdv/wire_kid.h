/* SPDX-License-Identifier: BSD-3-Clause */
/* What a kid does with its share of UDP port 4791; results as order's replies. */
#pragma once

enum { CAME_IPV4 = 4, CAME_IPV6 = 6, CAME_BY_HAND = 1 };

/* Joins: its index, or the error. */
long wire_kid_join(void);

/* Waits up to ms for a packet to that queue pair: which way it came, or -EAGAIN. */
long wire_kid_packet(long qpn, long ms);

/* Hands a packet to that queue pair to weftd.  0, or the error. */
long wire_kid_hand(long qpn);

/* How many packets to that queue pair come within ms of each other. */
long wire_kid_count(long qpn, long ms);

/* Sends a packet to that queue pair to an address of this machine, as another host would. */
void wire_send_to(const char *addr, long qpn);

/* Sends so many datagrams of random bytes there, of 1 to 64 bytes. */
void wire_send_noise(const char *addr, int n);
