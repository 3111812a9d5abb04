/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ABI layer's objects: each begins with the public struct of <infiniband/verbs.h> and holds
 * the HCA object behind it.  Include this header first: it gives the public functions default
 * visibility, all else of the library is hidden.
 */
#pragma once

#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#pragma GCC visibility pop

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/lock.h"
#include "hca/api/hca.h"
#include "include/weft/verbs_ext.h"
#include "verbs/events.h"

/* The header makes macros of these exported functions. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/*
 * Our one device.  Vendor libraries read the pointer that follows ibv_device to see whether the
 * device is theirs: it must be there, and NULL.
 */
struct verbs_device {
	struct ibv_device dev;
	void *not_a_vendor_device;
	__be64 guid;
};

struct verbs_ctx {
	struct hca_card *card;  /* imported: the process it is of, NULL our own */
	struct verbs_context v; /* ends with the public ibv_context */
};

struct verbs_td {
	struct ibv_td td;
	_Atomic uint32_t users; /* parent domains */
};

struct verbs_pd {
	struct ibv_pd pd;
	struct hca_pd *hca;
	bool imported;          /* hca belongs to another verbs_pd */
	struct verbs_pd *of;    /* a parent domain: the protection domain behind it, else NULL */
	struct verbs_td *td;    /* of a parent domain, may be NULL */
	_Atomic uint32_t users; /* parent domains of it; of a parent domain: objects in it */
};

struct verbs_mr {
	struct ibv_mr mr;
	struct hca_mr *hca;
};

struct verbs_mw {
	struct ibv_mw mw;
	struct hca_mw *hca;
};

struct verbs_dm {
	struct ibv_dm dm;
	struct hca_dm *hca;
};

struct verbs_channel {
	struct ibv_comp_channel ch;
	struct hca_channel *hca;
};

struct verbs_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex ex; /* so that there is room for its functions */
	};
	struct hca_cq *hca;
	struct event_source events;
	struct ibv_pd *domain; /* the parent domain that it was made in, or NULL */
	/* An extended CQ: the completion that its functions read. */
	struct lock poll_lock; /* from start_poll to end_poll, unless single_threaded */
	bool single_threaded;
	struct ibv_wc current;
	struct hca_wc_more more;
};

struct verbs_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex ex;
		struct { /* ex ends before it in older headers */
			char ex_before_flush[WEFT_WR_FLUSH_OFFSET];
			weft_wr_flush_fn wr_flush;
		};
	};
	struct hca_qp *hca;
	struct event_source events;
	struct qp_builder *builder; /* of a QP made with send_ops_flags: qp_ex.c */
};

struct verbs_srq {
	struct ibv_srq srq;
	struct hca_srq *hca;
	struct event_source events;
};

struct verbs_xrcd {
	struct ibv_xrcd xrcd;
	struct hca_xrcd *hca;
};
static inline struct verbs_ctx *to_ctx(struct ibv_context *context)
{
	return container_of(context, struct verbs_ctx, v.context);
}

static inline struct verbs_pd *to_pd(struct ibv_pd *pd)
{
	return container_of(pd, struct verbs_pd, pd);
}

/* In users, of an imported PD that the program gave back before its objects: the last one frees it.
 */
#define PD_UNIMPORTED (UINT32_C(1) << 31)

/*
 * One object more (+1) or less (-1) in pd, which may be NULL.  The HCA counts those of its own
 * PDs; a parent domain or an imported PD, which is only a name for one, counts here.
 */
static inline void count_domain_user(struct ibv_pd *pd, int change)
{
	if (!pd || !(to_pd(pd)->of || to_pd(pd)->imported))
		return;
	if (atomic_fetch_add_explicit(&to_pd(pd)->users, change, memory_order_acq_rel) + change ==
		PD_UNIMPORTED)
		free(to_pd(pd));
}

static inline struct verbs_mr *to_mr(struct ibv_mr *mr)
{
	return container_of(mr, struct verbs_mr, mr);
}

static inline struct verbs_dm *to_dm(struct ibv_dm *dm)
{
	return container_of(dm, struct verbs_dm, dm);
}

static inline struct verbs_channel *to_channel(struct ibv_comp_channel *ch)
{
	return container_of(ch, struct verbs_channel, ch);
}

static inline struct verbs_cq *to_cq(struct ibv_cq *cq)
{
	return container_of(cq, struct verbs_cq, cq);
}

static inline struct verbs_qp *to_qp(struct ibv_qp *qp)
{
	return container_of(qp, struct verbs_qp, qp);
}

static inline struct verbs_srq *to_srq(struct ibv_srq *srq)
{
	return container_of(srq, struct verbs_srq, srq);
}

static inline struct verbs_xrcd *to_xrcd(struct ibv_xrcd *xrcd)
{
	return container_of(xrcd, struct verbs_xrcd, xrcd);
}

/*
 * Is there an object, of whatever kind, and is it of another context?  The kernel finds it not, or
 * finds the wrong one: a handle is a number within its context.
 */
#define is_of_another(context_, object) ((object) && (object)->context != (context_))

/*
 * The three ways in which verbs report an error; err is an errno, negative or positive.  The
 * public functions' man pages say which one is theirs.
 */
static inline void *fail_null(int err)
{
	errno = err < 0 ? -err : err;
	return NULL;
}

static inline int fail_minus_one(int err)
{
	errno = err < 0 ? -err : err;
	return -1;
}

/* Turns 0 or a negative errno into 0 or a positive one, which is also left in errno. */
static inline int to_errno(int rc)
{
	if (rc)
		errno = -rc;
	return -rc;
}
