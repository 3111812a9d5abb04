/* SPDX-License-Identifier: BSD-3-Clause */
/* The private structs behind the opaque objects of hca.h; only files of hca/ include this. */
#pragma once

#include "base/lock.h"
#include "hca/api/hca.h"
#include "hca/seg/view.h"

struct exec;
struct peer;

struct hca_pd {
	uint32_t epoch;
	uint32_t handle; /* also the pd number in MR and QP entries */
	_Atomic uint32_t users;
	struct lock lock;   /* of the lists */
	struct hca_qp *qps; /* whose receives may still have to be copied out */
	struct hca_srq *srqs;
	struct hca_mw *mws;
	struct hca_pd *next;  /* of the process, so that a handle can be found */
	struct hca_pd **link; /* what points to us */
};

/* What a region is made of, as the segment's entry describes it. */
struct mr_region {
	uint64_t addr, length, iova;
	unsigned access;
	uint32_t flags; /* enum seg_mr_flags */
	uint64_t sink;
	bool mappable; /* the program's own memory: hca/mem/share.h */
};

/* What was mapped for a region, and goes with it. */
struct mr_mapping {
	void *at;
	size_t len;
};

struct hca_mr {
	uint32_t epoch;
	uint32_t index;
	uint32_t key; /* 0: a window, which is no region for lkeys, or deregistered */
	_Atomic uint32_t refs;
	struct hca_pd *pd;
	uint64_t addr, length, iova;
	unsigned access;
	uint64_t sink;     /* of the null region: where what comes for it goes; else 0 */
	struct hca_dm *dm; /* a region of device memory */
	struct mr_mapping mapping;
	bool fixed; /* not from the program's memory: cannot be re-registered */
	bool mappable;
	bool durable;       /* registered for persistent flushes, and counted */
	uint8_t durability; /* enum durability: what they can do */
	/* share.c: the set of regions, by address; under its lock */
	struct hca_mr *left, *right;
	uint32_t prio;
	uint64_t lo, hi, top; /* whole pages, in the arena; top: the highest hi below this node */
	uint64_t shift;       /* of a second mapping: from addresses to the arena; else 0 */
	bool second;          /* over an import of our own arena: its pages stay there */
	bool in_set, mapped, remap;
	uint32_t backing;     /* the object in which peers map it, 0: none (share_backing.c) */
	uint32_t born;        /* the key of an export, which the field above does not have */
	bool exported;        /* an export (export.c), and no region */
	struct hca_mr *ghost; /* the next that is closed, but still mapped by somebody */
};

struct hca_mw {
	struct hca_mr slot; /* what it is in the table of keys; its key is 0 */
	uint32_t born;      /* the key with which it came */
	struct hca_mw *next, **link;
};

struct hca_channel {
	uint32_t epoch;
	uint32_t id;
	int fd;
	struct lock lock; /* of all that follows, and of taking events */
	struct fired_ref order;
	struct fired_reader reader;
	struct hca_cq *cqs;
	struct hca_cq *next_up; /* where to look first when all are looked at */
	struct hca_cq *last;    /* whose event was given out last */
};

/* Tickets taken out of the ring early, as a QP went away or another ring came; before those in the
 * ring. */
struct ticket_run {
	uint64_t *t;
	uint32_t n, at;
	_Atomic uint32_t left; /* n - at, for a look without the lock */
};

/* Where the ring has solicited completions: all before looked were looked at, last is that + 1. */
struct cq_marks {
	uint64_t looked, last;
};

struct hca_cq {
	struct lock lock; /* the consumer side */
	uint32_t epoch;
	uint32_t index;
	bool stamps; /* completions carry their time */
	bool ignores_overrun;
	struct seg_cq *s;
	/* The ring in use; written by resize_cq under the lock, read by a look without it. */
	_Atomic uint64_t *_Atomic slots;
	_Atomic uint32_t log_size;
	struct ticket_ring *ring;
	_Atomic uint64_t head;
	_Atomic uint32_t idle_polls;
	struct ticket_run early;
	struct cq_marks solicited;
	uint64_t ring_bytes;
	void *cookie;
	_Atomic uint32_t users;
	struct hca_channel *channel;
	struct hca_cq *next;  /* on the channel */
	struct hca_cq **link; /* what points to us, NULL: on none */
	uint32_t fired_seen;  /* of seg_cq.fired: events that the program got, or lost */
	_Atomic bool armed;   /* once at least: events of it may come */
	/* Position + 1 of the only completion that waited when the program took the last event. */
	_Atomic uint64_t told_alone;
};

/* The receives of a UD QP in the order in which they were posted (hca/queue/rx_order.h). */
struct rx_order {
	uint8_t *wr; /* of struct seg_rqe, of which the first part is used; NULL: no such order */
	uint32_t stride, mask;
	uint32_t landed; /* how many have their bytes and have not completed */
	uint32_t next;   /* if any: those before it have theirs, or have completed */
};

/* The owner's side of a receive queue with several producers. */
struct hca_rxq {
	struct lock lock; /* posting */
	struct lock land; /* copying out and freeing completed receives */
	struct rxq_ref ref;
	uint32_t tail, depth, max_sge;
	_Atomic uint32_t put; /* receives posted, less those withdrawn; under the lock of posting */
	_Atomic uint32_t freed; /* receives polled; under that of landing */
	struct rx_order order;  /* of a UD QP */
};

struct hca_srq {
	uint32_t epoch;
	struct end me; /* its entry; no queues but rx */
	struct hca_rxq rx;
	struct hca_pd *pd;
	struct hca_cq *cq;     /* XRC, tags */
	struct hca_xrcd *xrcd; /* XRC */
	struct hca_tm *tm;     /* tags */
	void *cookie;
	_Atomic uint32_t users;
	struct lock lock;             /* of the list */
	struct hca_qp *qps;           /* that receive from it */
	struct hca_srq *next, **link; /* in the PD */
};

struct hca_xrcd {
	uint32_t epoch;
	uint64_t id;     /* the domain, the same in all processes that opened it by one inode */
	uint32_t member; /* of our segment's list + 1, 0: anonymous */
	_Atomic uint32_t users;
	struct lock lock;   /* of the list */
	struct hca_qp *qps; /* target QPs */
};

struct routes;

/* UD: the address to which the last datagram went, and what was found out about it. */
struct path_memo {
	uint8_t sgid[16], dgid[16];
	uint32_t flow, sum; /* as seg_av.flow; IPv4: of the header without the length */
	uint32_t gid;       /* where dgid stands in the port's table */
	uint8_t tclass;
	bool known, multicast, ipv4;
	uint8_t grh[SEG_GRH_BYTES]; /* without the length, and the checksum of IPv4 */
};

enum { EXPLAIN_STATUSES = IBV_WC_RNR_RETRY_EXC_ERR + 1 };

struct hca_qp {
	/* hot: posting */
	struct lock sq_lock;
	uint32_t sq_tail;
	uint32_t sq_built;        /* under sq_lock: the end of what hca_send_put() added */
	struct end me;            /* our end; immutable but for gen, which RESET counts up */
	struct end *_Atomic peer; /* the other end, NULL until found */
	_Atomic uint32_t sq_poll; /* requests below are free; written by poll_cq */
	uint32_t max_sge, max_inline, sq_depth;
	bool sig_all;
	_Atomic bool one_sided; /* what was posted last; a guess at what is queued */
	/* hot: receiving */
	struct lock rq_lock;
	uint32_t rq_tail;
	_Atomic uint32_t rq_poll; /* receives below are free */
	uint32_t rq_landed;       /* payloads below were copied out; under the receive CQ's lock */
	uint32_t rq_depth, rq_max_sge;
	struct hca_rxq rx;     /* UD: instead of the above; ref.ring.slots NULL: none */
	struct routes *routes; /* UD, XRC: the ends that requests go to; under our token */
	struct path_memo path; /* UD; under our token */
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
	struct peer *process; /* of the other end; one reference per end on the list */
	struct end *ends;     /* all that `peer` ever pointed to since RESET */
	uint64_t sq_bytes, rq_bytes;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	uint64_t next_find_ns; /* when to look for a missing peer again */
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
