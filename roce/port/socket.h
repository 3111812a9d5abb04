/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A socket for RoCEv2 packets: UDP port 4791, one IP family, a member of its SO_REUSEPORT group.
 *
 * - It is never connected: only then is the IPv4 identification, which the ICRC covers, 0 for each
 *   packet, or 0, 1, 2, ... in a batch.
 * - It does not fragment, and ignores what routers said of the path's MTU: an RDMA path has one.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct roce_socket_wish {
	bool ipv6;
	bool any;         /* all addresses of this machine; else addr alone */
	bool group;       /* in a SO_REUSEPORT group; without: one socket that steers nothing */
	uint8_t addr[16]; /* an IPv4 address is the last 4 bytes */
	uint16_t port;    /* host order; 0: the kernel chooses */
};

/* How much a socket holds while nobody reads, if the system lets it; bytes. */
enum { ROCE_SOCKET_ROOM = 4 << 20 };

/*
 * A socket with all its options that is not bound yet, so that a program can be attached before the
 * first packet.  Negative errno.
 */
int roce_socket_open(const struct roce_socket_wish *);

/* -EADDRINUSE: somebody else has the port (the kernel's rdma_rxe, or another user). */
int roce_socket_bind(int fd, const struct roce_socket_wish *);

/* What a packet's addresses and marks were, as control messages say. */
struct roce_from {
	bool ipv6;
	bool beside; /* it came from a process of this user on this host, past the port */
	uint8_t src[16], dst[16]; /* IPv4: the last 4 bytes */
	uint16_t src_port;
	uint8_t tos;
	uint8_t ttl; /* 0: not known */
	uint32_t ifindex;
	uint32_t segment; /* bytes of each packet in what was read; 0: it is one packet */
	uint32_t lost;    /* packets that this socket had no room for, ever */
};

enum { ROCE_CONTROL_ROOM = 256 };

/* Reads the control messages of what recvmsg filled in; false: the destination is missing. */
bool roce_socket_from(struct msghdr *, struct roce_from *);
