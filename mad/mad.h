/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The MAD layer: agents, transactions, dispatch.  It runs in weftd for all processes and all ports
 * of a fabric, which share one clock, one table of transactions and one heap of timers.  One
 * thread, nothing blocks; the owner of a port carries what goes out.
 *
 * A received MAD that answers one of ours goes to the agent that the upper half of its transaction
 * id names, if that waits for it.  Any other goes to the agent that is registered for its class,
 * class version, method and OUI; a Get or Set that nobody wants is answered with "unsupported".
 * All else is dropped and counted (mad/dispatch.c).
 *
 * Agents that say so send and receive messages of any length, by RMPP (mad/rmpp.h).
 */
#pragma once

#include "base/deadline.h"
#include "base/spare.h"
#include "mad/addr.h"
#include "mad/registration.h"
#include "wire/mad.h"

enum {
	MAD_AGENT_BUCKETS = 1024,
	MAD_RECV_BUCKETS = 64,
	MAD_TIMEOUTS = 64, /* sends that end, or are sent again, in one turn */
};

struct mad_port;
struct mad_registry;
struct mad_agent;
struct mad_send;

/* Who waits for MADs of a class; embedded, the members up to arg are the owner's to fill in. */
struct mad_agent {
	struct mad_registration reg;
	/*
	 * A request has come.  Without RMPP of the layer also: a segment, or what is said about
	 * segments, whoever waits for it.
	 */
	void (*receive)(
		struct mad_agent *a, const struct mad_addr *from, const uint8_t mad[MAD_SIZE]);
	/*
	 * A send has ended: status 0 with its response (NULL if none was awaited), -ETIMEDOUT, or
	 * -ECONNABORTED.  It is freed after the call.
	 */
	void (*done)(struct mad_agent *a, struct mad_send *s, int status, const uint8_t *response);
	/*
	 * With RMPP of the layer: a request of len bytes, a header and the data of all its segments
	 * behind it, is there.
	 */
	void (*receive_long)(
		struct mad_agent *a, const struct mad_addr *from, const uint8_t *msg, size_t len);
	const void
		*file; /* agents with the same one share it, as those of a umad file do; or NULL */
	void *arg;

	struct mad_port *port;
	struct mad_agent *next, **link; /* of the port */
	struct mad_agent *tid_next;     /* of its bucket */
	struct mad_registry *registry;  /* NULL: it only sends */
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

	/* In done(), if there is a response: where it came from, and how many bytes it has. */
	const struct mad_addr *response_from;
	size_t response_len;

	/* mad/transact.c: what it is found by, and the lists of its bucket and its agent */
	uint64_t tid;
	uint8_t mgmt_class;
	bool is_response; /* it answers itself */
	struct mad_send *next, **link;
	struct mad_send *agent_next, **agent_link;
};

enum mad_drop {
	MAD_DROP_VERSION,      /* of the base */
	MAD_DROP_QP,           /* an SMP at QP1, another class at QP0, or no such QP */
	MAD_DROP_CM_METHOD,    /* of a CM message: not Send */
	MAD_DROP_NO_AGENT,     /* nobody is registered; a Get or Set was answered */
	MAD_DROP_NO_REQUESTER, /* a response to nobody */
	MAD_DROP_NO_REQUEST,   /* a response to what its agent does not wait for */
	MAD_DROP_QUEUE,        /* more is queued than can be received: mad/loop.c */
	MAD_DROP_MEMORY,
	MAD_DROP_RMPP, /* a segment, ACK, STOP or ABORT that belongs to nothing */
	MAD_DROP_COUNT
};

/* What all ports of a fabric share. */
struct mad_layer {
	uint64_t (*now)(void *arg); /* ns */
	void *arg;

	struct mad_agent *by_tid[MAD_AGENT_BUCKETS]; /* agents, by the upper half: mad/agents.c */
	uint32_t last_hi_tid;
	struct mad_send **table; /* what waits for something: mad/transact.c */
	unsigned buckets, n_sends;
	struct spare spare_sends;
	struct deadlines deadlines;
	struct rmpp_recv *recvs[MAD_RECV_BUCKETS]; /* messages that come in segments: mad/rmpp.c */
	unsigned n_recvs, n_done;                  /* of them: not complete; complete */
	struct deadlines recv_deadlines, done_deadlines;
	struct mad_loop *loop_head, **loop_tail; /* not yet received: mad/loop.c */
	struct spare spare_loops;
	unsigned n_loops;
};

/* The members up to lmc are filled in, the rest is zero; that makes a port. */
struct mad_port {
	struct mad_layer *layer;
	/*
	 * Carries a MAD out; 0 or a negative errno.  May call mad_queue() and mad_loopback(), not
	 * mad_receive().
	 */
	int (*transmit)(void *arg, const struct mad_addr *to, const uint8_t mad[MAD_SIZE]);
	void *arg;
	bool has_qp0;  /* it takes SMPs */
	bool ethernet; /* there are no LIDs */
	uint16_t lid;  /* its base LID and LMC, kept up to date by the owner; 0: no LIDs */
	uint8_t lmc;

	struct mad_agent *agents;
	struct mad_registry *classes[MAD_REGISTERED_CLASSES]; /* mad/agents.c */
	uint64_t sent, received, resent, timed_out;
	uint64_t drops[MAD_DROP_COUNT];
};

/* now and arg are filled in, the rest is zero. */
void mad_layer_init(struct mad_layer *layer);
/* All ports have ended. */
void mad_layer_end(struct mad_layer *layer);

/* Its agents are unregistered, what is queued for it is gone. */
void mad_port_end(struct mad_port *port);

/* A transaction id of the agent's: its own 32 bits below. */
uint64_t mad_tid(const struct mad_agent *a, uint32_t low);

/* Makes the upper half of its transaction id the agent's, unless it is a response: that keeps it.
 */
void mad_own_tid(const struct mad_agent *a, uint8_t mad[MAD_SIZE]);

/* Sends a MAD once and forgets it.  What transmit() said. */
int mad_post(struct mad_agent *a, const struct mad_addr *to, const uint8_t mad[MAD_SIZE]);

/*
 * Sends a MAD, and again each timeout_ms until it was sent 1 + retries times, then done() is
 * called with -ETIMEDOUT, unless it was cancelled; response: or answered.  *out belongs to the
 * layer.  timeout_ms 0: it is sent once, *out is NULL, done() is not called and no response found.
 * -ENOMEM; -EINVAL: the agent has RMPP, the class has not.  That the first transmission failed
 * counts as a loss.
 */
int mad_send(struct mad_agent *a, const struct mad_addr *to, const uint8_t mad[MAD_SIZE],
	uint32_t timeout_ms, uint32_t retries, bool response, void *context, struct mad_send **out);

/*
 * The same for a message of any length, by RMPP: a MAD's header, the class's own, and data.
 * timeout_ms and retries count for each window of segments, and then for the response; timeout_ms
 * 0: a response is not waited for once all has arrived.  done() is called in any case, with
 * -ECONNABORTED when the other side gives up.  -EINVAL: the agent or the class has no RMPP, or it
 * is shorter than a header; -EMSGSIZE: it is too long; -ENOMEM.
 */
int mad_send_long(struct mad_agent *a, const struct mad_addr *to, const uint8_t *msg, size_t len,
	uint32_t timeout_ms, uint32_t retries, bool response, void *context, struct mad_send **out);

/* Ends it without a word. */
void mad_cancel(struct mad_send *s);

/* The peer needs more time: the present try gets timeout_ms from now. */
void mad_extend(struct mad_send *s, uint32_t timeout_ms);

/*
 * Receives what is queued, at most n MADs, and sees to what timed out, at most MAD_TIMEOUTS sends:
 * mad_next() says that there is more.
 */
void mad_run(struct mad_layer *layer, unsigned n);

/* For mad/rmpp.c: s has ended, as done() says; from, len: of the response. */
void mad_finish(struct mad_send *s, int status, const struct mad_addr *from,
	const uint8_t *response, size_t len);

/* When mad_run() has something to do: 0 never, 1 at once. */
uint64_t mad_next(const struct mad_layer *layer);
