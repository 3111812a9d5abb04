/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way of a data packet through a subnet as its tables have it now: over which links, on which
 * lanes, and where and why it ends.  Reads the tables alone, so that any process that maps them can
 * walk; asks nobody, changes nothing, counts nothing.  A table that is written meanwhile shows
 * entries of two moments, as it would to a packet on a wire.  (IBA 1.2.1, 14.2.5, 10.2.9, 18.2.4.)
 */
#pragma once

#include "fabric/tables.h"

enum { WALK_HOPS = 64 }; /* a packet goes over so many links, and no further */

enum walk_verdict {
	WALK_ARRIVES,
	WALK_NO_LINK,   /* the port by which it would leave has none that is up, or is not ACTIVE */
	WALK_NOT_READY, /* the port at the other end is neither ARMED nor ACTIVE */
	WALK_NO_ROUTE,  /* the switch has no entry for the LID */
	WALK_BACK,      /* its entry leads back out of the port by which it came */
	WALK_STRAY,     /* it has come to an adapter's port that has not the LID */
	WALK_LOOP,      /* WALK_HOPS links, and no end */
	WALK_NO_VL,     /* the SL has no lane out of that port */
	WALK_MTU,       /* it is longer than the link takes */
	WALK_PKEY_OUT,  /* the switch's port enforces P_Keys on what leaves */
	WALK_PKEY_IN,   /* ... and on what comes in */
	WALK_PKEY,      /* the port that it is for has not its P_Key */
};

struct walk_packet {
	uint32_t port; /* where it begins: an adapter's, or port 0 of a switch */
	uint16_t dlid; /* of one port, not of a group */
	uint16_t pkey; /* 0: not looked at */
	uint8_t sl;
	uint8_t mtu; /* that it needs, 1 (256 bytes) to 5 (4096); 0: it fits */
};

struct walk_hop {
	uint32_t out, in; /* the ports of the link */
	uint8_t vl;       /* the lane that it leaves on */
};

struct walk {
	enum walk_verdict verdict;
	uint32_t at;    /* the port that it is for; else the one that drops it */
	uint8_t mtu;    /* the least of the links, by its code; 0: there was none */
	unsigned hops;  /* links that it has crossed */
	uint64_t epoch; /* of the tables when it began: another one, and this may be old */
	struct walk_hop hop[WALK_HOPS];
};

/* A port of p that is none, as with any number beyond, is WALK_NO_LINK. */
void walk(const struct tables *t, const struct walk_packet *p, struct walk *out);
