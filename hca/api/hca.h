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
struct hca_mw;
struct hca_dm;
struct hca_card;
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
/* The PD of that handle, which then cannot go before hca_pd_put(); -ENOENT. */
int hca_pd_get(uint32_t handle, struct hca_pd **pd);
void hca_pd_put(struct hca_pd *pd);

/*
 * Registers [addr, addr+length).  iova: the address that work requests use.  access: enum
 * ibv_access_flags, optional bits are ignored.  Errors: -EINVAL bad flags or empty or wrapping
 * range, -EFAULT not mapped, PROT_NONE or not writable where a write right needs it, -ENOMEM.
 * Does not touch the pages.
 */
int hca_mr_reg(struct hca_pd *pd, void *addr, uint64_t length, uint64_t iova, unsigned access,
	struct hca_mr **mr);
/*
 * Returns once no peer can touch the memory any more; may wait for a stopped peer.  -EBUSY while
 * a window is bound to it.
 */
int hca_mr_dereg(struct hca_mr *mr);
/*
 * Changes what flags (enum ibv_rereg_mr_flags) names; the keys stay.  Errors as hca_mr_reg() and
 * hca_mr_dereg(); then the region is as it was.
 */
int hca_mr_rereg(struct hca_mr *mr, int flags, struct hca_pd *pd, void *addr, uint64_t length,
	unsigned access);
/* A region that reads as zeros and swallows what is written: only its lkey is good. */
int hca_mr_null(struct hca_pd *pd, struct hca_mr **mr);
/*
 * Registers [offset, offset+length) of a file that holds memory: a dma-buf, a memfd or another
 * file of tmpfs or hugetlbfs, a DAX device or file; or, whatever the file, memory of a GPU, if iova
 * is its address.  -EINVAL any other fd, a range beyond its end, an iova of another offset in the
 * page, rights that such a region has not; -EOPNOTSUPP a dma-buf that cannot be mapped; -EBADF,
 * -EACCES.
 */
int hca_mr_from_fd(struct hca_pd *pd, int fd, uint64_t offset, uint64_t length, uint64_t iova,
	unsigned access, struct hca_mr **mr);
/* Another reference to the region of that key in that PD, for hca_mr_put(); -ENOENT. */
int hca_mr_get(struct hca_pd *pd, uint32_t key, struct hca_mr **mr);
void hca_mr_put(struct hca_mr *mr);
/*
 * Advice about ranges of on-demand regions of pd.  -EINVAL unknown advice or flag, or a key that
 * is none; -EPERM a region that does not allow it, -EFAULT pages cannot be had.  May fault pages
 * in, which takes its time.
 */
int hca_mr_advise(struct hca_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
	const struct ibv_sge *sge, uint32_t n);
/* lkey and rkey are the same value. */
uint32_t hca_mr_key(const struct hca_mr *mr);

/* ---- memory windows ---- */

/* -EINVAL no such type, -ENOMEM. */
int hca_mw_alloc(struct hca_pd *pd, enum ibv_mw_type type, struct hca_mw **mw);
/* Returns once no peer can use it any more. */
int hca_mw_dealloc(struct hca_mw *mw);
/* The key with which it was born: what binds it first must give another variant of it. */
uint32_t hca_mw_key(const struct hca_mw *mw);

/* ---- device memory: HCA_DM_BYTES in each process ---- */

/* -EINVAL size 0 or alignment above a page, -ENOMEM no room. */
int hca_dm_alloc(uint64_t size, uint32_t log_align, struct hca_dm **dm);
/* -EBUSY while regions are on it. */
int hca_dm_free(struct hca_dm *dm);
uint32_t hca_dm_handle(const struct hca_dm *dm);
/* Copies into or out of it; -EINVAL if offset or length is no multiple of 4, or beyond its end. */
int hca_dm_write(struct hca_dm *dm, uint64_t offset, const void *from, uint64_t length);
int hca_dm_read(struct hca_dm *dm, uint64_t offset, void *to, uint64_t length);
/* Registers a part; addresses in it count from 0.  Errors as hca_mr_reg(). */
int hca_dm_reg(struct hca_pd *pd, struct hca_dm *dm, uint64_t offset, uint64_t length,
	unsigned access, struct hca_mr **mr);
/*
 * Another reference to the one of that handle, for hca_dm_put(), of another process's card or,
 * NULL, of this process; -ENOENT.
 */
int hca_dm_import(struct hca_card *card, uint32_t handle, struct hca_dm **dm);
void hca_dm_put(struct hca_dm *dm);
/*
 * A new fd of the file behind the device memory, which stands for this process's device:
 * ibv_context.cmd_fd.  The caller closes it.  -EBADF: the program has closed ours (closefrom).
 */
int hca_cmd_fd(void);
/* Is fd such a one of this process? */
bool hca_cmd_fd_is_ours(int fd);
/* Maps the device memory behind such a one of another process.  -EINVAL: it is none. */
int hca_card_import(int fd, struct hca_card **card);
void hca_card_put(struct hca_card *card);

/* ---- completion channels and queues ---- */

int hca_channel_create(struct hca_channel **ch);
/* -EBUSY while CQs use it. */
int hca_channel_destroy(struct hca_channel *ch);
/* The pollable fd: ibv_comp_channel.fd. */
int hca_channel_fd(const struct hca_channel *ch);
/*
 * Takes one event, blocking by the fd's O_NONBLOCK flag (-EAGAIN); gives the CQ's cookie.  Never
 * blocks where poll(2) found the fd readable and nobody else took the event.
 */
int hca_channel_get(struct hca_channel *ch, void **cookie);

enum hca_cq_flags {
	HCA_CQ_STAMPS = 1 << 0, /* completions carry the time at which they were made */
	/* What does not fit is lost; that is no error of the CQ. */
	HCA_CQ_IGNORE_OVERRUN = 1 << 1,
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
/* From now on it has no events.  -EBUSY while QPs use it. */
int hca_cq_close(struct hca_cq *cq);
/* Frees a CQ that was closed: until then it may be polled. */
void hca_cq_free(struct hca_cq *cq);
/* Lets events wait for so many completions or us, whatever comes first; 0 and 0: not at all. */
int hca_cq_moderate(struct hca_cq *cq, uint16_t count, uint16_t period_us);
/* Returns the number of completions (0..n), or a negative errno after an overrun. */
int hca_cq_poll(struct hca_cq *cq, int n, struct ibv_wc *wc);
/* What a completion has beside struct ibv_wc. */
struct hca_wc_more {
	uint64_t stamp_ns; /* its time, CLOCK_MONOTONIC; without HCA_CQ_STAMPS the present one */
	uint64_t tm_tag;   /* of a message that matched a tag, else 0 */
	uint32_t tm_priv;
};

/* The same for one completion, and more of it. */
int hca_cq_poll_one(struct hca_cq *cq, struct ibv_wc *wc, struct hca_wc_more *more);

/*
 * Asks for an event: for the next completion, or solicited or failed one, that was not polled yet,
 * so at once if such a one waits, unless it is the only one that waited when the program took the
 * last event, which told of it.  A moderated CQ's event may wait longer.  Always 0.
 */
int hca_cq_arm(struct hca_cq *cq, bool solicited_only);

/* ---- shared receive queues ---- */

/* What an SRQ is made of beside its PD: XRC needs a domain and a CQ, tags need tm and a CQ. */
struct hca_srq_parts {
	struct hca_xrcd *xrcd;
	struct hca_cq *cq;
	const struct ibv_tm_cap *tm;
};

/*
 * Creates an SRQ; real capacities are written back to attr.  -EINVAL limits exceeded or a part
 * missing or too many, -ENOMEM.
 */
int hca_srq_create(struct hca_pd *pd, struct ibv_srq_attr *attr, const struct hca_srq_parts *parts,
	void *cookie, struct hca_srq **srq);
/* -EBUSY while QPs use it.  Returns once no peer touches it. */
int hca_srq_destroy(struct hca_srq *srq);
/* XRC: the number that requests name. */
uint32_t hca_srq_num(const struct hca_srq *srq);
/*
 * mask: enum ibv_srq_attr_mask.  A limit above the number of receives raises its event at once.
 * -EINVAL an attribute out of range, or more receives wait than there is to be room for; -ENOMEM.
 * IBV_SRQ_MAX_WR may wait for a stopped peer.
 */
int hca_srq_modify(struct hca_srq *srq, const struct ibv_srq_attr *attr, int mask);
void hca_srq_query(struct hca_srq *srq, struct ibv_srq_attr *attr);
/* As hca_post_recv(). */
int hca_post_srq_recv(struct hca_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/*
 * Operations on the list of tags, in order; on error *bad is the first that was not done.
 * -EOPNOTSUPP an SRQ without one, -EINVAL an unknown operation or flag or too many SGEs, -ENOMEM
 * the list is full, or too many operations wait to be polled.
 */
int hca_srq_ops(struct hca_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad);

/* ---- address handles ---- */

/*
 * Creates a handle for UD.  -EINVAL no GRH (RoCE needs one), or a port, sgid_index or GID that is
 * not there; -EHOSTUNREACH another host; -ENOMEM.
 */
int hca_ah_create(struct hca_pd *pd, const struct ibv_ah_attr *attr, struct hca_ah **ah);
/* Frees it, ibv included. */
void hca_ah_destroy(struct hca_ah *ah);

/*
 * Does attr lead anywhere now?  *mtu: the most that a packet may carry on the way there, enum
 * ibv_mtu.  0; -EINVAL port, GRH or sgid_index; -EHOSTUNREACH nothing leads there.  Of another host
 * it does not wait for an answer, but may wait for weftd.
 */
int hca_path(const struct ibv_ah_attr *attr, uint8_t *mtu);

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

/* -EBUSY while it is in a multicast group.  Returns once no peer uses the QP's memory; drops its
 * completions from its CQs. */
int hca_qp_destroy(struct hca_qp *qp);
uint32_t hca_qp_num(const struct hca_qp *qp);
/* The present state (an executor may have moved it to ERR). */
enum ibv_qp_state hca_qp_state(const struct hca_qp *qp);
/* All checks of ibv_modify_qp(3): wrong transition, missing or extra attribute: -EINVAL. */
int hca_qp_modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask);
int hca_qp_query(struct hca_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);

/* Counts a peer that broke the protocol of a face, once this process is attached. */
void hca_count_breach(void);

/*
 * What the region or window with that key of qp's peer allows now: enum ibv_access_flags in
 * *access. -EINVAL qp is not connected; -EOPNOTSUPP its peer was not found yet; -ENOENT no such
 * key.
 */
int hca_qp_rkey_access(const struct hca_qp *qp, uint32_t rkey, unsigned *access);

/*
 * Post a list.  On error *bad is the first request that was not taken and all before it were.
 * -EINVAL wrong state, opcode, too many SGEs, inline too long; -ENOMEM queue full.  post_send
 * executes what it can before it returns; it does not sleep.
 */
int hca_post_send(struct hca_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int hca_post_recv(struct hca_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/*
 * The same, one request at a time: start takes the send queue's lock, commit or abort drops it,
 * all in one thread.  What was put becomes visible with the commit, or never.  An error of put
 * leaves the request out; commit gives -EINVAL in a wrong state.  A flush comes as IBV_WR_FLUSH
 * with the range in wr.atomic: compare_add is the length, swap the type and level << 8.
 */
void hca_send_start(struct hca_qp *qp);
int hca_send_put(struct hca_qp *qp, const struct ibv_send_wr *wr);
int hca_send_commit(struct hca_qp *qp);
void hca_send_abort(struct hca_qp *qp);

enum {
	HCA_MAX_SGE = 32,
	HCA_MAX_INLINE = 512,
	HCA_MAX_WR = 32768,
	HCA_MAX_CQE = (1 << 22) - 1,
	HCA_MAX_MSG_LOG = 31, /* 2 GiB */
	HCA_MAX_RD_ATOMIC = 128,
	HCA_DM_BYTES = 1 << 20,
	HCA_MAX_TAGS = 1024,
	HCA_MAX_TAG_OPS = 4096,
	HCA_MAX_RNDV_HEADER = 128,
};
