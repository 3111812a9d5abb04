/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs of this process. */
#pragma once

#include <infiniband/verbs.h>

#include "hca/obj/grh.h"
#include "hca/obj/srq.h"

struct datagram_ops;
struct exec;
struct far_ops;
struct peer;

struct routes;

/* UD: the address to which the last datagram went, and what was found out about it. */
struct path_memo {
	uint8_t sgid[16], dgid[16];
	uint32_t flow; /* as seg_av.flow */
	uint32_t gid;  /* where dgid stands in the port's table, if it is of this host */
	/* The fabric page was so when it was compared last, and the request's index; see datagram.c
	 */
	uint32_t page_seq, sgid_index;
	uint8_t tclass;
	bool known, multicast;
	const struct datagram_ops *away; /* who carries it away, a multicast too; NULL: nobody */
	struct seg_path to;              /* ... by this path, */
	uint64_t until_ns;               /* ... which is found anew then */
	bool here;                       /* ... though it leads to this host (WEFT_WIRE=always) */
	bool elsewhere;    /* is the number that was asked for last of another fabric here? */
	uint32_t asked;    /* which one that was; 0: none */
	uint64_t asked_ns; /* until when that is believed */
	struct grh grh;
};

enum { EXPLAIN_STATUSES = IBV_WC_RNR_RETRY_EXC_ERR + 1 };

struct hca_qp {
	/* hot: posting */
	struct lock sq_lock;
	uint32_t sq_tail;
	uint32_t sq_built; /* under sq_lock: the end of what hca_send_put() added */
	struct end me;     /* our end; immutable but for gen, which RESET counts up */
	const struct far_ops *_Atomic far; /* who reaches the other end: hca/run/far.h */
	struct end *_Atomic peer;          /* near.c: the other end, NULL until found */
	_Atomic uint32_t sq_poll;          /* requests below are free; written by poll_cq */
	uint32_t max_sge, max_inline, sq_depth;
	bool sig_all;
	_Atomic bool one_sided; /* what was posted last; a guess at what is queued */
	/* hot: receiving */
	struct lock rq_lock;
	uint32_t rq_tail;
	_Atomic uint32_t rq_poll; /* receives below are free */
	uint32_t rq_landed;       /* payloads below were copied out; under the receive CQ's lock */
	uint32_t rq_depth, rq_max_sge;
	struct hca_rxq rxq;     /* UD: instead of the above; ref.ring.slots NULL: none */
	struct routes *routes;  /* UD, XRC: the ends that requests go to; under our token */
	struct path_memo *path; /* UD; under our token */
	/* cold */
	uint32_t epoch;
	void *cookie;
	struct hca_pd *pd;
	struct hca_cq *send_cq, *recv_cq; /* NULL where the type has none */
	struct hca_srq *srq;
	struct hca_xrcd *xrcd;
	bool no_self_mcast;
	uint32_t opens; /* by ibv_open_qp, beside the one who created it; under the domain's lock */
	struct hca_qp *shared_next, **shared_link; /* of the SRQ, or of the XRC domain */
	struct hca_qp *next, **link; /* in the PD: the one behind, and what points to us */
	struct lock modify_lock;
	void *_Atomic away;   /* of another far end than near.c's, which sets it */
	struct peer *process; /* near.c: of the other end; one reference per end on the list */
	struct end *ends;     /* near.c: all that `peer` ever pointed to since RESET */
	uint64_t sq_bytes, rq_bytes;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	uint64_t next_find_ns; /* near.c: when to look for a missing peer again */
	_Atomic uint8_t meant; /* near.c: enum near_meant */
	/* explain.c: completions by status, and refused posts: invalid ones, those without room */
	_Atomic uint32_t ended[EXPLAIN_STATUSES], refused[2];
	/* progress.c: the list of what waits for time */
	struct hca_qp *watch_next, **watch_at;
	/* the worker's list */
	struct hca_qp *work_next;
	_Atomic uint32_t queued; /* bit 0: our direction, bit 1: the peer's */
};

/* False for UD, which has no other end. */
static inline bool qp_connects(const struct hca_qp *qp)
{
	return qp->init.qp_type != IBV_QPT_UD;
}
