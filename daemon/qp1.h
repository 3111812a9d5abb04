/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Management datagrams of weft0's port between machines: UD packets from QP1 to QP1 on UDP port
 * 4791, which weftd sends and takes itself (daemon/wire.h).
 *
 *   | BTH UD SEND_ONLY, P_Key 0xffff | DETH Q_Key 0x80010000, QP 1 | 256 bytes of MAD | ICRC |
 *
 * The port is opened when somebody needs it: who sends to another machine, listens, or has a file
 * of MADs open; and let go when nothing of that is left.
 */
#pragma once

#include <jansson.h>

#include "daemon/server.h"
#include "mad/mad.h"
#include "roce/fault/fault.h"

/* Why a packet to QP1 was no MAD for us. */
enum qp1_drop {
	QP1_DROP_MALFORMED, /* no packet at all, or of another kind than a whole datagram */
	QP1_DROP_PKEY,
	QP1_DROP_QKEY,
	QP1_DROP_LENGTH, /* not a MAD's */
	QP1_DROP_ICRC,
	QP1_DROP_ADDRESS, /* to none of our addresses, or from one of them, or from a group */
	QP1_DROP_COUNT
};

struct qp1 {
	struct server *server;
	struct mad_port *port;
	bool held; /* the port is ours to use */
	uint32_t psn;
	uint64_t sent, received;
	uint64_t failed; /* could not be sent */
	uint64_t drops[QP1_DROP_COUNT];
	struct fault_set faults;
	uint64_t faulted; /* rules did something to so many */
};

/* weft0's; s->wire is there, and tells it of packets from now on through s->qp1. */
void qp1_start(struct qp1 *q, struct server *s, struct mad_port *port);

/*
 * Sends a MAD to another machine, without waiting for anything.  -EHOSTUNREACH: the addresses are
 * not of one family; -EOPNOTSUPP: WEFT_WIRE=never; what wire_hold() and wire_send() answer.
 */
int qp1_send(struct qp1 *q, const struct mad_addr *to, const uint8_t mad[MAD_SIZE]);

/* MADs may come from other machines from now on, if this one has a network.  Fails without a word.
 */
void qp1_open(struct qp1 *q);

/* Nobody needs that any more. */
void qp1_close(struct qp1 *q);

/*
 * Rules of faults for MADs to and from other machines, instead of those before.  What rules hold
 * back goes on at once: nothing here waits.
 */
void qp1_set_faults(struct qp1 *q, const struct fault_rules *rules);

/* What weft status shows of it: an object that the caller owns. */
json_t *qp1_status(const struct qp1 *q);
