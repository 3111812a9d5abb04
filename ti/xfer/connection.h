/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections: listeners, requests, and what came of them; ti/conn/ makes and ends them.
 *
 * conn->lock is for states and for what belongs to the request; a queue's lock (ti/xfer/cq.h) for
 * what completed; sq_lock and rq_lock for posting.  Order: lock, queues (by address), sq_lock or
 * rq_lock. The adapter's calls that wait for callbacks are made without any of them.
 */
#pragma once

#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stddef.h>

#include "base/deadline.h"
#include "ti/xfer/cq.h"

enum conn_state {
	CONN_NEW,
	CONN_LISTENING,
	CONN_CONNECTING, /* connect(): until the answer */
	CONN_ASKED,      /* the program may accept() or reject() */
	CONN_ACCEPTING,
	CONN_LIVE,
	CONN_BROKEN, /* was live; all that was posted comes back */
	CONN_FAILED, /* never was, result says why */
	CONN_CLOSING
};

enum {
	PRIV_REQ_MAX = 56,
	PRIV_REP_MAX = 196,
	PRIV_REJ_MAX = 148,
	PRIV_MAX = 256 /* of all adapters' */
};

/* What is under way: the poster counts posted, who polls counts done. */
struct flow {
	_Atomic uint32_t posted, done;
};

static inline uint32_t flow_open(const struct flow *f)
{
	return atomic_load_explicit(&f->posted, memory_order_relaxed) -
	       atomic_load_explicit(&f->done, memory_order_acquire);
}

struct counts {
	_Atomic uint64_t elements[XFERS], bytes[XFERS], errors;
};

struct conn {
	struct member m;
	_Atomic uint32_t state; /* enum conn_state; changes under lock */
	pthread_mutex_t lock;
	pthread_cond_t changed; /* of state */

	/* what was asked for */
	ti_conn_attr_t attr; /* without zeros */
	bool active;
	struct sockaddr_storage src, dst; /* if active */
	ti_conn_req_cb_t request_cb;
	void *context;
	ti_conn_request_t *request; /* where the program wants it; NULL: own_request */
	ti_conn_request_t own_request;
	uint16_t offset, offset_len; /* of private data: what a listener compares */
	uint8_t priv_out[PRIV_REP_MAX], priv_in[PRIV_MAX];
	uint8_t priv_came[PRIV_MAX]; /* as priv_in was, which the program may edit */
	uint32_t priv_out_len, priv_in_len;

	/* what stands for it below */
	struct pd *pd;
	struct rdma_cm_id *id; /* under lock */
	struct ibv_qp *qp;
	struct ibv_cq *ibcq; /* of sends and receives */
	uint32_t max_inline, max_msg;
	uint8_t rdma_depth;              /* as asked for */
	uint8_t peer_reads, peer_serves; /* READs at a time, as the peer's request has them */

	/* the end */
	ti_status_t result; /* why it failed; under lock */
	ti_status_t broken; /* what pfn_err_cb is told; conn_break()'s alone */
	struct deadline due;
	struct job request_job, error_job, close_job, finish_job;
	bool accepting; /* a thread is in accept(), and posts close_job if told so: */
	bool close_later;
	ti_context_cb_t gone_cb;
	void *gone_context;
	_Atomic bool may_finish; /* CONN_CLOSING, and no accept() is at it any more */
	_Atomic bool finishing;

	/* queues, with references; named by connect() or listen(), NULL: by accept() */
	struct cq *named_send, *named_recv;
	bool uses_queues; /* those below cannot be destroyed; under lock */

	/* completions: under the locks of both queues */
	struct cq *send_cq, *recv_cq; /* NULL until accept() */
	bool bound;                   /* it is in their lists */
	struct conn *next_of[2]; /* in send_cq->conns; in recv_cq->conns, if that is another one */
	ti_comp_info_t comp;
	struct elements ready[XFERS]; /* for callbacks */
	bool wake[XFERS];             /* one of these calls back */
	bool mute;                    /* accept() failed, and gives all back itself */
	_Atomic bool calling;         /* the completion thread may be in a callback */

	/* the completion thread's */
	struct conn *more_next; /* there may be more completions than it took */
	struct ibv_cq *more_cq;
	uint32_t events; /* to acknowledge; 0: it is not in the list */

	/* posting */
	struct lock sq_lock, rq_lock;
	struct lock error_lock;                 /* of the transition to ERR, the last one taken */
	struct element *waiting, *waiting_last; /* for room in the send queue */
	_Atomic bool backlog;                   /* there are some */
	uint32_t rdma_max;                      /* of accept(); 0: none */
	struct flow sq, out, in;                /* requests in the send queue; elements */
	struct counts counts;
	struct atomic32 *spare_atomics;
};

/* The connection that has field. */
#define CONN_OF(member_, field) ((struct conn *)((char *)(member_)-offsetof(struct conn, field)))

static inline enum conn_state conn_state(const struct conn *c)
{
	return (enum conn_state)atomic_load_explicit(&c->state, memory_order_acquire);
}

/* The connection with a reference, or NULL. */
static inline struct conn *conn_get(ti_conn_handle_t h)
{
	return object_get(h, HANDLE_CONN);
}

static inline void conn_put(struct conn *c)
{
	object_put(&c->m.obj);
}
