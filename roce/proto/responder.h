/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder of an RC or UC queue pair on the wire: takes request packets in order, has them
 * carried out, and answers (InfiniBand Architecture, volume 1, 9.7.4, 9.7.5 and 9.8.3).  It knows
 * no socket, memory or clock.  A message comes in pieces; what is done with one is the caller's,
 * whose verdict becomes the answer.
 *
 * Answers leave in the order of their requests: responses, then what NAK or ACK is owed.
 *
 * What comes ahead of a lost packet is kept only if the requester is Weft, which marks what it
 * sends again.  It is taken once the gap before it was filled by such a packet; where nothing was
 * missing it is asked for, and what comes then takes its place.  So who knows no PSN has to hit the
 * one that is expected, as with an adapter.
 */
#pragma once

#include "roce/proto/ahead.h"
#include "roce/proto/replay.h"
#include "wire/roce.h"

/* What came of a piece of a request. */
enum resp_verdict {
	RESP_OK,
	RESP_RNR,     /* no receive is posted: try again later */
	RESP_LATER,   /* something changes just now: as if the packet had been lost */
	RESP_INVALID, /* NAK codes, all of which end the connection */
	RESP_ACCESS,
	RESP_OPERATION,
};

struct rc_resp_ops {
	/* A message's first packet: takes a receive (SEND), or checks its range (WRITE). */
	enum resp_verdict (*begin)(void *arg, const struct roce_packet *p);
	enum resp_verdict (*place)(void *arg, uint64_t offset, const void *bytes, size_t len);
	/* Its last packet has been placed: `length` bytes in all; WRITE with imm takes a receive.
	 */
	enum resp_verdict (*end)(void *arg, const struct roce_packet *p, uint64_t length);
	/* The message that was begun does not go on, or begins anew: its receive is free again. */
	void (*drop)(void *arg);
	/* May the range of that READ be read? */
	enum resp_verdict (*read)(void *arg, const struct roce_packet *p);
	/* Carries out an atomic, FLUSH or ATOMIC WRITE; *old: an atomic's word before. */
	enum resp_verdict (*word)(void *arg, const struct roce_packet *p, uint64_t *old);
	/*
	 * Sends an answer: these headers and, for a READ, len bytes of memory at va.  1: sent; 0:
	 * no room now; negative: the memory is not there any more, which is an error of the queue
	 * pair unless they were sent before (`again`).
	 */
	int (*send)(void *arg, const struct roce_packet *head, uint64_t va, uint32_t rkey,
		size_t len, bool again);
	/* A NAK that ends the connection is on its way. */
	void (*fatal)(void *arg, enum resp_verdict why);
};

struct rc_resp_config {
	bool unreliable; /* UC */
	uint32_t mtu;
	uint32_t dest_qpn;
	uint32_t psn;       /* the first that is expected */
	uint32_t max_reads; /* max_dest_rd_atomic */
	uint8_t min_rnr_timer;
};

struct rc_responder {
	const struct rc_resp_ops *ops;
	void *arg;
	struct rc_resp_config conf;
	struct replay replay;
	struct ahead ahead; /* RC */
	uint32_t expected;  /* PSN */
	uint32_t msn;       /* messages carried out, 24 bits */
	uint8_t open;       /* enum roce_act of the message that was begun, or 0 */
	uint64_t offset;    /* bytes of it so far */
	uint64_t length;    /* of a WRITE, as its first packet said */
	uint8_t nak;        /* syndrome that is owed, or 0 */
	uint32_t nak_psn;
	bool weft;   /* the requester is Weft */
	bool earned; /* what is kept right behind what came last is the requester's */
	bool silent; /* a NAK was sent: nothing more until the expected packet comes */
	bool dead;
	uint32_t owed; /* messages whose ACK is owed */
	bool ack_now;  /* the requester waits for it */
	/* counters */
	uint64_t duplicates, out_of_sequence, rnr_naks, dropped;
};

/* -ENOMEM, or -EINVAL without an MTU. */
int rc_resp_start(struct rc_responder *, const struct rc_resp_config *, const struct rc_resp_ops *,
	void *arg);

void rc_resp_end(struct rc_responder *);

/* A request packet came. */
void rc_resp_request(struct rc_responder *, const struct roce_packet *);

/*
 * The same, that came as these bytes: keeps them if it is ahead of what is expected, and no longer
 * than its opcode and the path MTU allow.
 */
void rc_resp_keep(
	struct rc_responder *, const struct roce_packet *, const uint8_t *bytes, size_t n);

/*
 * After a request was taken: the packet that was kept and is expected now, for the caller to parse,
 * to hand to rc_resp_request() and to ahead_free().  NULL: there is none; what is missing next is
 * asked for.
 */
uint8_t *rc_resp_next_kept(struct rc_responder *, size_t *n);

/*
 * Sends what is owed, at most `bytes` of READ responses; an ACK only where one is due, or where
 * `ack` asks for all that is owed.  True: there is more.
 */
bool rc_resp_run(struct rc_responder *, uint64_t bytes, bool ack);
