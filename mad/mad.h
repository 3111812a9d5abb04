/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The MAD layer of one port: agents, transactions, dispatch.  It runs in weftd for all processes
 * of a fabric.  One thread, nothing blocks; the owner of the port has the clock and carries what
 * goes out.
 *
 * A received MAD that answers one of ours (the response bit, or TrapRepress) goes to the agent
 * that waits for it: same TID, class and peer.  Any other goes to the agent that is registered
 * for its class, class version and method; a Get or Set that nobody wants is answered with
 * "unsupported", anything else is dropped and counted.
 *
 * Agents that say so send and receive messages of any length, by RMPP (mad/rmpp.h).
 */
#pragma once

#include <stdbool.h>

#include "base/deadline.h"
#include "mad/addr.h"
#include "wire/mad.h"

enum { MAD_CLASSES = 256 };

struct mad_port;
struct mad_registry;
struct mad_agent;
struct mad_send;

/* Who waits for MADs of a class; embedded, the members up to arg are the owner's to fill in. */
struct mad_agent {
	uint8_t mgmt_class, class_version;
	uint64_t methods[2]; /* bit n: method n, without the response bit; none: only replies */
	/* A request has come. */
	void (*receive)(
		struct mad_agent *a, const struct mad_addr *from, const uint8_t mad[MAD_SIZE]);
	/*
	 * A send has ended: status 0 with its response (NULL if none was awaited), -ETIMEDOUT, or
	 * what transmit() said.  It is freed after the call.
	 */
	void (*done)(struct mad_agent *a, struct mad_send *s, int status, const uint8_t *response);
	/*
	 * NULL: no RMPP; segments come as any other MAD.  A request of len bytes, a header and the
	 * data of all its segments behind it, is there.
	 */
	void (*receive_long)(
		struct mad_agent *a, const struct mad_addr *from, const uint8_t *msg, size_t len);
	void *arg;

	struct mad_port *port;
	struct mad_agent *next, **link; /* of the port */
	struct mad_send *sends;         /* that wait for something */
	uint32_t hi_tid;                /* upper half of its transaction ids */
};

/* A MAD on its way, until it is answered, cancelled or has timed out. */
struct mad_send {
	struct deadline deadline; /* first member */
	struct mad_agent *agent;
	struct mad_addr addr;
	void *context;
	uint32_t timeout_ms;
	uint32_t retries; /* left */
	bool response;    /* a response ends it */
	uint8_t mad[MAD_SIZE];
	struct rmpp_send *rmpp; /* NULL: one MAD; else the first segment is above */
	size_t response_len;    /* in done(): bytes of the response */

	/* mad/transact.c: what it is found by, and the lists of its bucket and its agent */
	uint64_t tid;
	uint8_t mgmt_class, method;
	struct mad_send *next, **link;
	struct mad_send *agent_next, **agent_link;
};

enum mad_drop {
	MAD_DROP_VERSION,
	MAD_DROP_NO_AGENT,
	MAD_DROP_NO_REQUEST,
	MAD_DROP_MEMORY,
	MAD_DROP_RMPP, /* a segment, ACK, STOP or ABORT that belongs to nothing */
	MAD_DROP_COUNT
};

struct mad_port {
	/* Carries a MAD out; 0 or a negative errno.  May call mad_loopback(). */
	int (*transmit)(void *arg, const struct mad_addr *to, const uint8_t mad[MAD_SIZE]);
	uint64_t (*now)(void *arg); /* ns */
	void *arg;

	struct mad_agent *agents;
	struct mad_registry *classes[MAD_CLASSES]; /* who is registered: mad/agents.c */
	struct mad_send **table;                   /* what waits for something: mad/transact.c */
	unsigned buckets, n_sends;
	struct mad_send *spare_sends;
	unsigned n_spare;
	struct deadlines deadlines;
	struct rmpp_recv *recvs; /* messages that are coming in segments */
	unsigned n_recvs;
	struct deadlines recv_deadlines;
	struct mad_loop *loop_head, **loop_tail; /* sent to ourselves, not yet received */
	struct mad_loop *spare_loops;
	uint32_t next_hi_tid;
	uint64_t sent, received, resent, timed_out;
	uint64_t drops[MAD_DROP_COUNT];
};

/* The members up to arg are filled in, the rest is zero. */
void mad_port_init(struct mad_port *port);
void mad_port_end(struct mad_port *port);

/* A transaction id of the agent's: its own 32 bits below. */
uint64_t mad_tid(const struct mad_agent *a, uint32_t low);

/* Sends a MAD once and forgets it.  What transmit() said. */
int mad_post(struct mad_agent *a, const struct mad_addr *to, const uint8_t mad[MAD_SIZE]);

/*
 * Sends a MAD, and again each timeout_ms until it was sent 1 + retries times, then done() is
 * called with -ETIMEDOUT, unless it was cancelled; response: or answered.  *out belongs to the
 * layer.  -ENOMEM; that the first transmission failed counts as a loss.
 */
int mad_send(struct mad_agent *a, const struct mad_addr *to, const uint8_t mad[MAD_SIZE],
	uint32_t timeout_ms, uint32_t retries, bool response, void *context, struct mad_send **out);

/*
 * The same for a message of any length, by RMPP: a MAD's header, the class's own, and data.
 * timeout_ms and retries count for each window of segments, and then for the response.  -EINVAL:
 * its class has no RMPP, or it is shorter than a header; -EMSGSIZE: it is too long; -ENOMEM.
 * done() gets -ECONNABORTED when the other side gives up.
 */
int mad_send_long(struct mad_agent *a, const struct mad_addr *to, const uint8_t *msg, size_t len,
	uint32_t timeout_ms, uint32_t retries, bool response, void *context, struct mad_send **out);

/* Ends it without a word. */
void mad_cancel(struct mad_send *s);

/* The peer needs more time: the present try gets timeout_ms from now. */
void mad_extend(struct mad_send *s, uint32_t timeout_ms);

/* A MAD has come. */
void mad_receive(struct mad_port *port, const struct mad_addr *from, const uint8_t mad[MAD_SIZE]);

/* For transmit(): the receiver is this port itself.  -ENOMEM. */
int mad_loopback(struct mad_port *port, const struct mad_addr *to, const uint8_t mad[MAD_SIZE]);

/* Receives what was sent to ourselves and sees to what timed out; at most n MADs. */
void mad_run(struct mad_port *port, unsigned n);

/* For mad/rmpp.c: s has ended, as done() says; len: bytes of the response. */
void mad_finish(struct mad_send *s, int status, const uint8_t *response, size_t len);

/* When mad_run() has something to do: 0 never, 1 at once. */
uint64_t mad_next(const struct mad_port *port);
