/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This process's share of UDP port 4791, which weftd owns: a socket for each IP family, in a
 * SO_REUSEPORT group of which weftd steers each packet, by its destination queue pair, to the
 * process that holds that number (daemon/wire.h).
 *
 *        packets                                   packets of a QP of this process
 *   UDP 4791 ---+-- index 0: weftd                    |
 *               +-- index 1: process A ---- fd[] -----'
 *               +-- index 2: process B              what came at the wrong socket, both ways:
 *                                          hand ----- struct wire_handed, then one packet
 *
 * The numbers of the descriptors stay what they are for as long as the process lives, also when
 * weftd dies: steering goes on without it.  Its successor learns of this process when that comes
 * again, so who has a thread that sleeps with these sockets watches rdv_socket() for its end too,
 * and then calls rdv_check().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct conn;

/* WEFT_WIRE: whether packets go through the network. */
enum wire_mode {
	WIRE_AUTO,   /* to and from other machines */
	WIRE_NEVER,  /* other machines are out of reach */
	WIRE_ALWAYS, /* also between queue pairs of this machine */
};

/* As the environment said when it was first asked; anything else is auto, and logged once. */
enum wire_mode wire_mode(void);

enum { WIRE_IPV4, WIRE_IPV6, WIRE_FAMILIES };

struct rdv_wire {
	int fd[WIRE_FAMILIES]; /* -1: this machine has not that family; CLOEXEC, non-blocking */
	uint32_t index;        /* in the group; from 1, for 0 is weftd's */
	int hand; /* one message a packet; a SOCK_SEQPACKET pair's end, CLOEXEC, non-blocking */
};

/* What stands before a packet that is handed over; the packet starts with its BTH. */
struct wire_handed {
	uint8_t src[16], dst[16]; /* IPv4: the last 4 bytes */
	uint32_t ifindex;
	uint16_t src_port; /* host order */
	uint16_t ident;    /* IPv4: most likely its identification, as its place in a batch says */
	uint8_t tos;
	uint8_t ipv6;     /* 0 or 1 */
	uint16_t segment; /* bytes of each packet but the last, if there are several; else 0 */
};

_Static_assert(sizeof(struct wire_handed) == 44, "no padding");

/*
 * Joins the group, once: later calls return the same, which is rdv's and stays where it is.  All
 * QP numbers that are leased to this process, now and later, are steered to it.  Sockets that the
 * program has closed behind our back are replaced, and may then have other numbers.  In a forked
 * child: joins anew.  Control path; may block, also for up to 2 s while those who have the port of
 * a weftd that died come to its successor.
 *
 * -EOPNOTSUPP: WEFT_WIRE=never; -EADDRINUSE: somebody else has the port, and weftd looks each
 * second whether it is free, so that it pays to ask again; -EADDRNOTAVAIL: this machine has not
 * the address of `weft up --address`; -EMFILE, -ENOMEM, and the common errors of rdv/rdv.h.
 */
int rdv_wire_join(const struct rdv_wire **out);

/*
 * Whether what rdv_wire_join() gave last is still ours, and not closed by the program behind our
 * back. Not while another thread joins.
 */
bool rdv_wire_whole(void);

/* Says in one warning, once, why the last rdv_wire_join() failed: for who refuses something by it.
 */
void rdv_wire_explain(void);

/* For the attachment, under the lock of control calls: tells a new weftd what we have.  -errno. */
int wire_publish(struct conn *conn);

/* For the attachment, in a forked child: its parent's sockets are not its own. */
void wire_forget(void);
