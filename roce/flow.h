/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A flow: a connected queue pair of ours whose other end is reached by packets.  What of it is not
 * atomic is under the engine's lock (roce/engine.h).
 */
#pragma once

#include "base/deadline.h"
#include "hca/exec/respond.h"
#include "hca/obj/qp.h"
#include "roce/kept.h"
#include "roce/proto/origin.h"
#include "roce/proto/requester.h"
#include "roce/proto/responder.h"
#include "roce/tx.h"

/* Why a flow has its turn. */
enum flow_call {
	FLOW_POSTED = 1 << 0,   /* requests were posted, or the state has changed */
	FLOW_RECEIVE = 1 << 1,  /* a receive was posted for which a message waits */
	FLOW_ANSWERED = 1 << 2, /* answers came */
	FLOW_ASKED = 1 << 3,    /* requests came */
	FLOW_DUE = 1 << 4,      /* a time has come */
	FLOW_MORE = 1 << 5,     /* its last turn was over before it was through */
};

enum { FLOW_COUNTS = 9 };

struct flow {
	struct hca_qp *qp;
	uint32_t qpn;
	bool unreliable;   /* UC */
	struct flow *next; /* in the table of flows */
	struct tx_path path;
	struct origin origin;
	bool holds;                  /* roce/beside.h */
	_Atomic unsigned calls;      /* enum flow_call; 0: on no list */
	struct flow *_Atomic called; /* the next on the list of those that others called */
	struct flow *behind;         /* in the line of those that are to have a turn */
	struct deadline due;

	/* the requester */
	struct rc_requester req;
	bool asks;                     /* req was started */
	uint32_t state;                /* of the queue pair, when req was run last */
	bool drains;                   /* in SQD, whose program wants to be told of its end */
	uint32_t base;                 /* where entry 0 of req stands in the send queue */
	uint32_t bad_entry;            /* this one ends with bad_status, */
	enum ibv_wc_status bad_status; /* ... unless that is 0 */
	uint64_t again_ns;             /* it was held up, and is tried again; 0: not */
	uint64_t put;                  /* packets of it that were given to tx */
	bool is_late;                  /* what an answer brought is for a worker to place: */
	struct kept_list late;         /* those */

	/* the responder */
	struct rc_responder resp;
	struct respond in;  /* the message that resp.open tells of */
	uint64_t served_ns; /* when a piece of it came last */
	enum answer said;   /* what came of a packet, if resp could not be told */
	bool last_try;      /* "no receive" is an answer now */
	struct kept_list kept;
	bool for_worker;               /* a worker was asked for a turn, and had none yet */
	uint64_t kept_until, kept_due; /* when it is given up; when it is tried again */

	uint64_t told[FLOW_COUNTS]; /* what of the halves' own counts the process's have */

	/* ACKs that are owed: roce/ack.h */
	struct flow *owing; /* the next on the list */
	bool owes;          /* it is on the list */
	bool replies;       /* the program answers what it gets */
	uint8_t replied;    /* how often in a row it did although it was not expected */
	uint8_t credit;     /* how often in a row it need not, and is expected to still */
	uint64_t owed_since, acked_alone;
	uint64_t cnp_ns; /* when one was sent last */
};

/* Of a queue pair on its way to RTR; on no list.  NULL: no memory. */
struct flow *flow_new(struct hca_qp *qp);

/* Frees it, with the engine stopped if it was ever served; it is on no list any more. */
void flow_free(struct flow *f);

/* The other end is Weft. */
void flow_meets_weft(struct flow *f);

/* Only a worker can go on: it is asked to, for its turn. */
void flow_for_worker(struct flow *f, unsigned direction);

/* Adds what its halves have counted since to the counters of the process. */
void flow_count_up(struct flow *f, struct exec *x);

/* Puts it into the table, and out of it. */
void flow_add(struct flow *f);
void flow_del(struct flow *f);

/* That of our queue pair with that number, or NULL. */
struct flow *flow_find(uint32_t qpn);

/* How many flows of an IP family there are (KEEPER_IPV4, KEEPER_IPV6). */
unsigned flow_count(int family);

/* Calls visit for each flow; it may not add or delete any. */
void flow_each(void (*visit)(struct flow *f, void *arg), void *arg);

/* In a forked child: they are the parent's. */
void flow_forked_child(void);

/* The state of its queue pair now. */
static inline uint32_t flow_state(const struct flow *f)
{
	return end_state(&f->qp->me);
}

static inline struct seg_qp *flow_seg(const struct flow *f)
{
	return f->qp->me.qp;
}
