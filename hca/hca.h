/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The soft HCA as the ABI layer (verbs/) sees it.  Objects are opaque; the ABI layer wraps each
 * in its ibv_ struct and passes that as a cookie.  Functions return 0 or a negative errno unless
 * they say otherwise, never touch errno, and may block only where they say so.  All are thread
 * safe.  Types of <infiniband/verbs.h> are used for what a program passes in.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "fabric/page.h"

struct hca_pd;
struct hca_mr;
struct hca_cq;
struct hca_channel;
struct hca_qp;

/* ---- the device ---- */

/*
 * Attaches the process (control path, may start weftd: rdv/rdv.h lists the errors) and returns
 * its live fabric page.  Further calls are cheap.
 */
int hca_open(const struct fabric_page **page);

/* Limits, identity and abilities; page may come from hca_open(). Fills all of *attr. */
void hca_query_device(const struct fabric_page *page, struct ibv_device_attr_ex *attr);

/* The clock that completion times are of: CLOCK_MONOTONIC in ns. */
uint64_t hca_clock_ns(void);

/* The eventfd of async events: readable while one waits; ibv_context.async_fd. */
int hca_async_fd(void);

/*
 * Takes one async event, blocking by the fd's O_NONBLOCK flag (-EAGAIN).  *cookie: the cookie of
 * the QP or CQ it is about; for port events NULL.
 */
int hca_async_get(enum ibv_event_type *type, void **cookie);

/* ---- protection domains and memory ---- */

int hca_pd_alloc(struct hca_pd **pd);
/* -EBUSY while MRs or QPs are in it. */
int hca_pd_free(struct hca_pd *pd);
uint32_t hca_pd_handle(const struct hca_pd *pd);

/*
 * Registers [addr, addr+length).  iova: the address that work requests use.  access: enum
 * ibv_access_flags, optional bits are ignored.  Errors: -EINVAL bad flags or empty or wrapping
 * range, -EFAULT not mapped, PROT_NONE or not writable where a write right needs it, -ENOMEM.
 * Does not touch the pages.
 */
int hca_mr_reg(struct hca_pd *pd, void *addr, uint64_t length, uint64_t iova, unsigned access,
	struct hca_mr **mr);
/* Returns once no peer can touch the memory any more; may wait for a stopped peer. */
int hca_mr_dereg(struct hca_mr *mr);
/* lkey and rkey are the same value. */
uint32_t hca_mr_key(const struct hca_mr *mr);

/* ---- completion channels and queues ---- */

int hca_channel_create(struct hca_channel **ch);
/* -EBUSY while CQs use it. */
int hca_channel_destroy(struct hca_channel *ch);
/* The pollable fd: ibv_comp_channel.fd. */
int hca_channel_fd(const struct hca_channel *ch);
/* Takes one event, blocking by the fd's O_NONBLOCK flag (-EAGAIN); gives the CQ's cookie. */
int hca_channel_get(struct hca_channel *ch, void **cookie);

enum hca_cq_flags {
	HCA_CQ_STAMPS = 1 << 0, /* completions carry the time at which they were made */
};

/*
 * *cqe in: wanted entries (1..max_cqe), out: real.  channel may be NULL.  flags: enum
 * hca_cq_flags.
 */
int hca_cq_create(
	int *cqe, struct hca_channel *channel, unsigned flags, void *cookie, struct hca_cq **cq);
/*
 * Gives the CQ room for *cqe entries.  -EINVAL more wait in it, or not 1..max_cqe; -ENOMEM.  May
 * wait for a stopped peer.
 */
int hca_cq_resize(struct hca_cq *cq, int *cqe);
/* -EBUSY while QPs use it. */
int hca_cq_destroy(struct hca_cq *cq);
/* Returns the number of completions (0..n), or a negative errno after an overrun. */
int hca_cq_poll(struct hca_cq *cq, int n, struct ibv_wc *wc);
/*
 * The same for one completion, and its time (CLOCK_MONOTONIC ns); a CQ without HCA_CQ_STAMPS
 * gives the present time.
 */
int hca_cq_poll_one(struct hca_cq *cq, struct ibv_wc *wc, uint64_t *stamp_ns);
int hca_cq_arm(struct hca_cq *cq, bool solicited_only);

/* ---- queue pairs ---- */

/*
 * Creates a QP; real capacities are written back to init->cap.  -EINVAL limits exceeded or a CQ
 * missing, -EOPNOTSUPP a type that does not exist yet (only RC does), -ENOMEM.
 */
int hca_qp_create(struct hca_pd *pd, struct ibv_qp_init_attr *init, struct hca_cq *send_cq,
	struct hca_cq *recv_cq, void *cookie, struct hca_qp **qp);
/* Returns once no peer uses the QP's memory; drops its completions from its CQs. */
int hca_qp_destroy(struct hca_qp *qp);
uint32_t hca_qp_num(const struct hca_qp *qp);
/* The present state (an executor may have moved it to ERR). */
enum ibv_qp_state hca_qp_state(const struct hca_qp *qp);
/* All checks of ibv_modify_qp(3): wrong transition, missing or extra attribute: -EINVAL. */
int hca_qp_modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask);
int hca_qp_query(struct hca_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);

/*
 * Post a list.  On error *bad is the first request that was not taken and all before it were.
 * -EINVAL wrong state, opcode, too many SGEs, inline too long; -ENOMEM queue full.  post_send
 * executes what it can before it returns; it does not sleep.
 */
int hca_post_send(struct hca_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int hca_post_recv(struct hca_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

enum {
	HCA_MAX_SGE = 32,
	HCA_MAX_INLINE = 512,
	HCA_MAX_WR = 32768,
	HCA_MAX_CQE = (1 << 22) - 1,
	HCA_MAX_MSG_LOG = 31, /* 2 GiB */
	HCA_MAX_RD_ATOMIC = 128,
};
