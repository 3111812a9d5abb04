/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where packets to an address go, as the kernel's tables have it now: by which interface, from
 * which of our addresses, how large they may be, and whether the next hop is known to be there.
 * Addresses have the form of GIDs: IPv4 as ::ffff:a.b.c.d.  Nothing here waits for anybody but the
 * kernel.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct route_want {
	uint8_t dst[16];
	uint8_t src[16];  /* all zero: whichever the kernel prefers */
	uint32_t ifindex; /* all routes but those of this interface are left out; 0: none */
	uint8_t tos;      /* of IPv4 */
};

struct route {
	uint8_t src[16];  /* the wanted one, or what the kernel would take; zero: it knows none */
	uint8_t next[16]; /* the gateway, or the destination itself; zero: nobody (a group) */
	uint32_t ifindex;
	uint32_t mtu;     /* bytes of an IP packet: of the route if it has one, else of the link */
	bool has_gateway; /* next is a gateway */
	bool local;       /* the destination is an address of this host */
	bool next_known;  /* packets leave at once; also where a link needs no addresses */
	int refusal;      /* there is none: the kernel's own negative errno for that, else 0 */
};

/*
 * How packets get there now.  -EHOSTUNREACH: there is no route, or one that refuses (out->refusal
 * says how); other negative errnos: the kernel could not be asked (-EMFILE and the like).
 */
int route_find(const struct route_want *, struct route *out);

/* Is the next hop known now?  A negative errno: the kernel could not be asked. */
int route_look_at_neighbour(const struct route *, bool *known);

/*
 * A socket that becomes readable when something is learned of next hops; an fd or a negative errno.
 */
int route_watch_neighbours(void);

/*
 * Reads what waits there and shows each piece of news; does not block.  False: some was lost, and
 * all that matters has to be looked at.
 */
bool route_read_neighbours(int fd,
	void (*news)(void *arg, uint32_t ifindex, const uint8_t next[16], bool known), void *arg);

/*
 * Has the kernel look for the next hop, if it does not know it: sends the destination an empty UDP
 * datagram, to the port whose purpose is to discard them.  0 or a negative errno.
 */
int route_look_for_neighbour(const struct route_want *, const struct route *);

/*
 * The path MTU, enum ibv_mtu, of a link or route whose MTU is so many bytes: the largest that
 * leaves room for the headers of RoCE v2, but 256 at least; the largest of all where there is no
 * link (0).
 */
int route_path_mtu(uint32_t link_mtu);
