/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UDP port 4791 of this host, or of one of its addresses, as weftd's: who wants it, who has which
 * seat, and which queue pair numbers are steered there.
 *
 *   closed --- a process joins, or weftd's CM holds it ---> open --- nobody wants it, for the time
 *     ^  '- taken by another: once a second, while wanted      |     after which weftd would leave
 *     '--------------------------------------------------------'
 *
 * After a restart the group is in the keeper that its processes hold, and the first that comes
 * brings it; steering stays as it was until the others have come too, or for a moment.
 */
#pragma once

#include "daemon/port/group.h"
#include "daemon/port/steer.h"
#include "daemon/session.h"
#include "daemon/wire_counters.h"
#include "daemon/wire_hand.h"

struct wire_port {
	struct watch timer;                 /* first member */
	struct watch shown;                 /* of the group */
	struct watch socket[WIRE_FAMILIES]; /* of seat 0 */
	struct wire_group group;
	struct wire_hand hand;
	struct wire_ranges ranges; /* as attached last */
	uint64_t adopted_ns;       /* CLOCK_MONOTONIC; 0: never */
	uint64_t steer_ns;         /* when a program would come if each had waited for its time */
	uint64_t unwanted_ns;      /* since when; 0: it is wanted */
	uint64_t tried_ns;
	uint32_t held;             /* by weftd's own */
	uint32_t waiting;          /* processes that could not join */
	int failed;                /* the last try: -errno */
	struct port_holder holder; /* of -EADDRINUSE */
	bool stale;                /* leases have changed since */
	struct wire_counters counters;
};

/* Nothing is opened yet.  -ENOMEM, -EMFILE. */
int wire_start(struct server *s);

/* OP_WIRE_JOIN. */
int wire_request(struct server *s, struct session *c, struct proto_in *in, struct reply *r);

/* A process with a seat is gone: the seat is the next one's. */
void wire_process_gone(struct server *s, struct process *p);

/* A process has other numbers than before. */
void wire_leases_changed(struct server *s, const struct process *p);

/*
 * weftd's CM wants the port: opens it, or tries again each second; one release for each hold.  0,
 * or -errno for now.
 */
int wire_hold(struct server *s);
void wire_release(struct server *s);

/* Who gets what comes for QP1. */
void wire_on_qp1(struct server *s, wire_qp1 qp1);
