/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions that inline verbs reach through a context's tables.  Errors as in the man page
 * of the verb that calls them.
 */
#pragma once

#include "verbs/objects.h"

/* query.c */
int verbs_query_port(
	struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr, size_t size);
int verbs_query_device_ex(struct ibv_context *context,
	const struct ibv_query_device_ex_input *input, struct ibv_device_attr_ex *attr,
	size_t size);

/* The device's clock now. */
int verbs_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);

/* cq.c */
int verbs_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
/* What both ways of creating a CQ share; NULL with errno.  flags: enum hca_cq_flags. */
struct verbs_cq *verbs_make_cq(struct ibv_context *context, int cqe, void *cq_context,
	struct ibv_comp_channel *channel, int comp_vector, unsigned flags);
int verbs_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int verbs_req_notify_cq(struct ibv_cq *cq, int solicited_only);

/* cq_ex.c */
struct ibv_cq_ex *verbs_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *init);

/* pd.c */
struct ibv_td *verbs_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *init);
int verbs_dealloc_td(struct ibv_td *td);
struct ibv_pd *verbs_alloc_parent_domain(
	struct ibv_context *context, struct ibv_parent_domain_init_attr *attr);

/* qp.c */
int verbs_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int verbs_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_qp *verbs_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init);
struct ibv_qp *verbs_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);

/* srq.c */
int verbs_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad);
int verbs_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_srq *verbs_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *init);
int verbs_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);

/* xrcd.c */
struct ibv_xrcd *verbs_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int verbs_close_xrcd(struct ibv_xrcd *xrcd);

/* mr.c */
struct ibv_mr *verbs_alloc_null_mr(struct ibv_pd *pd);
struct ibv_mr *verbs_reg_dm_mr(
	struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length, unsigned int access);
int verbs_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
	struct ibv_sge *sge, uint32_t n);

/* dm.c */
struct ibv_dm *verbs_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int verbs_free_dm(struct ibv_dm *dm);

/* qp_ex.c */
/*
 * Fills the functions that build requests, for a QP that was made with these send_ops_flags.
 * Returns 0, -EOPNOTSUPP an operation that the QP's type does not have, -ENOMEM.
 */
int qp_ex_init(struct verbs_qp *qp, uint64_t send_ops, uint32_t max_inline);

/* mw.c */
struct ibv_mw *verbs_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int verbs_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int verbs_dealloc_mw(struct ibv_mw *mw);

/*
 * Copies port port_num of the fabric page (control path, may block as hca_open() does).  Returns 0
 * or a negative errno, -EINVAL for a port that is not there.
 */
int verbs_read_port(uint32_t port_num, struct fabric_port *port);

/* The GID table's entry, or NULL if it is empty or beyond the end. */
const struct fabric_gid *verbs_gid(const struct fabric_port *port, uint32_t index);
