/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive queues with several producers, and XRC domains, of this process. */
#pragma once

#include "base/lock.h"
#include "hca/seg/view.h"

struct hca_cq;
struct hca_pd;
struct hca_qp;
struct hca_tm;

/* The receives of a UD QP in the order in which they were posted (hca/queue/rxq_order.h). */
struct rxq_order {
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
	struct rxq_order order; /* of a UD QP */
};

struct hca_srq {
	uint32_t epoch;
	struct end me; /* its entry; no queues but rxq */
	struct hca_rxq rxq;
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
