/* SPDX-License-Identifier: BSD-3-Clause */
/* The private structs behind the opaque objects of hca.h; only files of hca/ include this. */
#pragma once

#include "base/lock.h"
#include "hca/hca.h"
#include "hca/peer.h"
#include "hca/view.h"

struct hca_pd {
	uint32_t epoch;
	uint32_t handle; /* also the pd number in MR and QP entries */
	_Atomic uint32_t users;
	struct lock lock;   /* of the list */
	struct hca_qp *qps; /* whose receives may still have to be copied out */
};

struct hca_mr {
	uint32_t epoch;
	uint32_t index, key;
	struct hca_pd *pd;
	uint64_t addr, length, iova;
	unsigned access;
	/* share.c: the set of regions, by address; under its lock */
	struct hca_mr *left, *right;
	uint32_t prio;
	uint64_t lo, hi, top; /* whole pages; top: the highest hi below this node */
	bool in_set, mapped, remap;
};

struct hca_channel {
	uint32_t epoch;
	uint32_t id;
	int fd;
	struct lock lock; /* of the list of CQs */
	struct hca_cq *cqs;
	struct hca_cq *next_up; /* where to look first, for fairness */
};

/* Tickets taken out of the ring early, because a QP went away; before those in the ring. */
struct ticket_run {
	uint64_t *t;
	uint32_t n, at;
	_Atomic uint32_t left; /* n - at, for a look without the lock */
};

struct hca_cq {
	struct lock lock; /* the consumer side */
	uint32_t epoch;
	uint32_t index;
	struct seg_cq *s;
	_Atomic uint64_t *slots;
	uint32_t log_size;
	_Atomic uint64_t head;
	_Atomic uint32_t idle_polls;
	struct ticket_run early;
	uint64_t ring_bytes;
	void *cookie;
	_Atomic uint32_t users;
	struct hca_channel *channel;
	struct hca_cq *next; /* on the channel */
	uint32_t fired_seen;
};

struct hca_qp {
	/* hot: posting */
	struct lock sq_lock;
	uint32_t sq_tail;
	struct end me;            /* our end; immutable but for gen, which RESET counts up */
	struct end *_Atomic peer; /* the other end, NULL until found */
	_Atomic uint32_t sq_poll; /* requests below are free; written by poll_cq */
	uint32_t max_sge, max_inline, sq_depth;
	bool sig_all;
	/* hot: receiving */
	struct lock rq_lock;
	uint32_t rq_tail;
	_Atomic uint32_t rq_poll; /* receives below are free */
	uint32_t rq_landed;       /* payloads below were copied out; under the receive CQ's lock */
	uint32_t rq_depth, rq_max_sge;
	/* cold */
	uint32_t epoch;
	void *cookie;
	struct hca_pd *pd;
	struct hca_cq *send_cq, *recv_cq;
	struct hca_qp *next, **link; /* in the PD: the one behind, and what points to us */
	struct lock modify_lock;
	struct peer *process; /* of the other end; one reference per end on the list */
	struct end *ends;     /* all that `peer` ever pointed to since RESET */
	uint64_t sq_bytes, rq_bytes;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	uint64_t next_find_ns; /* when to look for a missing peer again */
	/* progress.c: the list of what waits for time */
	struct hca_qp *watch_next, **watch_at;
	/* the worker's list */
	struct hca_qp *work_next;
	_Atomic uint32_t queued; /* bit 0: our direction, bit 1: the peer's */
};

/* Copies out what has arrived in qp's slots and payload ring; the receive CQ's lock is held. */
void qp_land(struct hca_qp *qp, uint32_t upto);

/* Takes away every completion of qp that cq still holds; cq's lock is taken. */
void cq_purge(struct hca_cq *cq, const struct hca_qp *qp);

/* Copies out everything that has arrived for QPs of this PD (before memory of it goes). */
void pd_land_all(struct hca_pd *pd);

/* Runs our own direction, or the one towards us, as far as it goes now. */
void qp_run_out(struct hca_qp *qp);
void qp_run_in(struct hca_qp *qp);

/* Looks for the other end if it is missing; rate limited. */
void qp_find_peer(struct hca_qp *qp);

/*
 * The same on the way to RTR: a weftd that has just started does not know all processes yet, so
 * one that is not found is looked for a while, at most about 60 ms.
 */
void qp_await_peer(struct hca_qp *qp);

/*
 * The slow side of waiting: deadlines of parked QPs that weftd may have lost, peers not found
 * yet.  Called from idle polls and before sleeping; cheap when there is nothing.
 */
void progress_slow(void);

/* The same at once: the program is about to sleep where we cannot see it. */
void progress_before_sleep(void);

/* True while some QP of ours waits for a deadline or for its peer. */
bool progress_pending(void);
