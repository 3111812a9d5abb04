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
struct hca_srq;
struct hca_xrcd;

/* An address handle: what a program posts, and what we know of it. */
struct hca_ah {
	struct ibv_ah ibv; /* the ABI layer fills it */
	struct ibv_ah_attr attr;
	struct hca_pd *pd;
	uint32_t epoch;
};

/* ---- the device ---- */

/*
 * Attaches the process (control path, may start weftd: rdv/rdv.h lists the errors) and returns
 * its live fabric page.  Further calls are cheap.
 */
int hca_open(const struct fabric_page **page);

/* Limits and identity; page may come from hca_open(). Fills all of ibv_device_attr. */
void hca_query_device(const struct fabric_page *page, struct ibv_device_attr *attr);

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

/* *cqe in: wanted entries (1..max_cqe), out: real.  channel may be NULL. */
int hca_cq_create(int *cqe, struct hca_channel *channel, void *cookie, struct hca_cq **cq);
/* -EBUSY while QPs use it. */
int hca_cq_destroy(struct hca_cq *cq);
/* Returns the number of completions (0..n), or a negative errno after an overrun. */
int hca_cq_poll(struct hca_cq *cq, int n, struct ibv_wc *wc);
int hca_cq_arm(struct hca_cq *cq, bool solicited_only);

/* ---- shared receive queues ---- */

/*
 * Creates an SRQ; real capacities are written back to attr.  xrcd and cq: of an XRC SRQ, else
 * NULL.  -EINVAL limits exceeded, -ENOMEM.
 */
int hca_srq_create(struct hca_pd *pd, struct ibv_srq_attr *attr, struct hca_xrcd *xrcd,
	struct hca_cq *cq, void *cookie, struct hca_srq **srq);
/* -EBUSY while QPs use it.  Returns once no peer touches it. */
int hca_srq_destroy(struct hca_srq *srq);
/* XRC: the number that requests name. */
uint32_t hca_srq_num(const struct hca_srq *srq);
/*
 * mask: enum ibv_srq_attr_mask.  A limit above the number of receives raises its event at once.
 * -EINVAL an attribute out of range, -EOPNOTSUPP IBV_SRQ_MAX_WR.
 */
int hca_srq_modify(struct hca_srq *srq, const struct ibv_srq_attr *attr, int mask);
void hca_srq_query(struct hca_srq *srq, struct ibv_srq_attr *attr);
/* As hca_post_recv(). */
int hca_post_srq_recv(struct hca_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* ---- address handles ---- */

/*
 * Creates a handle for UD.  -EINVAL no GRH (RoCE needs one), or a port, sgid_index or GID that is
 * not there; -EHOSTUNREACH another host; -ENOMEM.
 */
int hca_ah_create(struct hca_pd *pd, const struct ibv_ah_attr *attr, struct hca_ah **ah);
/* Frees it, ibv included. */
void hca_ah_destroy(struct hca_ah *ah);

/* ---- XRC domains ---- */

/*
 * Opens the domain of the inode behind fd, or with fd -1 an anonymous one; oflag: O_CREAT,
 * O_EXCL.  -EAGAIN it does not exist and O_CREAT is not given; -EINVAL it exists and O_EXCL is, or
 * an anonymous one without O_CREAT; -EBADF.  Control path.
 */
int hca_xrcd_open(int fd, int oflag, struct hca_xrcd **xrcd);
/* -EBUSY while QPs or SRQs are in it. */
int hca_xrcd_close(struct hca_xrcd *xrcd);
/*
 * Opens the target QP of this process with that number once more: it lives until each who has it
 * has destroyed it.  -ENOENT: there is none in that domain.
 */
int hca_qp_open(struct hca_xrcd *xrcd, uint32_t qpn, struct hca_qp **qp);

/* ---- queue pairs ---- */

/* What a QP is made of beside ibv_qp_init_attr and its PD; NULL where the type has none. */
struct hca_qp_parts {
	struct hca_cq *send_cq, *recv_cq;
	struct hca_srq *srq;
	struct hca_xrcd *xrcd;
	uint32_t create_flags; /* enum ibv_qp_create_flags */
};

/*
 * Creates a QP; real capacities are written back to init->cap.  pd NULL: the target of XRC.
 * -EINVAL limits exceeded or a part missing, -EOPNOTSUPP a type or flag that is not there,
 * -ENOMEM.
 */
int hca_qp_create(struct hca_pd *pd, struct ibv_qp_init_attr *init,
	const struct hca_qp_parts *parts, void *cookie, struct hca_qp **qp);
/*
 * A UD QP joins or leaves a multicast group; joining twice is no error.  -EINVAL another type, no
 * multicast GID, not in that group; -ENOSPC.  Control path.
 */
int hca_mcast_attach(struct hca_qp *qp, const union ibv_gid *gid);
int hca_mcast_detach(struct hca_qp *qp, const union ibv_gid *gid);

/* -EBUSY while it is in a multicast group.  Returns once no peer uses the QP's memory; drops its completions from its CQs. */
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
