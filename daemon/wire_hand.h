/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that came at the wrong socket.  What is steered to nobody, and what a process finds among
 * its own in one read (software GRO merges by flow), is handed to the process that holds the queue
 * pair's number; QP1 is weftd's own.  Nothing here looks behind the BTH: who gets a packet checks
 * it.
 */
#pragma once

#include "daemon/server.h"
#include "rdv/wire.h"

struct wire_seat;

/* A process that has a seat. */
struct wire_member {
	struct watch
		hand; /* first member; our end of its pair, -1: the process has closed its own */
	struct wire_seat *seat;
};

/* Why a packet went nowhere; counted, shown by weft status. */
enum wire_drop {
	WIRE_DROP_SHORT,      /* too short for a BTH and an ICRC */
	WIRE_DROP_NO_ADDRESS, /* the kernel did not say where it was sent to */
	WIRE_DROP_NO_QP,      /* nobody has that number */
	WIRE_DROP_NO_SEAT,    /* whose it is has not joined */
	WIRE_DROP_BACK,       /* handed over by the process whose it is */
	WIRE_DROP_FULL,       /* whose it is does not read */
	WIRE_DROP_MALFORMED,  /* handed over without what has to stand before it */
	WIRE_DROP_COUNT
};

const char *wire_drop_name(enum wire_drop why);

/* What weftd does with a packet to QP1: from its BTH, with its ICRC; nothing is checked yet. */
typedef void (*wire_qp1)(
	struct server *s, const struct wire_handed *from, const uint8_t *packet, size_t len);

struct wire_hand {
	wire_qp1 qp1; /* set before the port is opened */
	uint64_t got, handed, sent;
	uint64_t came_bytes, sent_bytes;  /* of seat 0 */
	uint64_t overflow[WIRE_FAMILIES]; /* of seat 0, by the kernel's count */
	uint64_t drops[WIRE_DROP_COUNT];
};

/* Reads seat 0, within bounds.  As struct watch's. */
void wire_read_socket(struct server *s, struct watch *w, uint32_t events);

/* Reads what the process of a struct wire_member, whose watch w is, hands over; within bounds. */
void wire_read_hand(struct server *s, struct watch *w, uint32_t events);

/* A packet of weftd's own, complete with its ICRC. */
struct wire_out {
	uint8_t src[16], dst[16]; /* IPv4: the last 4 bytes; src all 0: the kernel's choice */
	uint32_t ifindex;         /* 0: the kernel's choice; of a link-local address it must be */
	uint16_t dst_port;        /* 0: the port of RoCE */
	uint8_t tos;
	bool ipv6;
	const uint8_t *packet;
	size_t len;
};

/*
 * Sends it from seat 0, without blocking; its IPv4 identification is 0.  -ENETDOWN: the port is not
 * open; -EAGAIN: no room; else what sendmsg(2) answers.
 */
int wire_send(struct server *s, const struct wire_out *out);
