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

/* cq.c */
int verbs_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int verbs_req_notify_cq(struct ibv_cq *cq, int solicited_only);

/* qp.c */
int verbs_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int verbs_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_qp *verbs_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init);
struct ibv_qp *verbs_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);

/* srq.c */
int verbs_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_srq *verbs_create_srq_ex(
	struct ibv_context *context, struct ibv_srq_init_attr_ex *init);
int verbs_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);

/* xrcd.c */
struct ibv_xrcd *verbs_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int verbs_close_xrcd(struct ibv_xrcd *xrcd);

/* mw.c */
struct ibv_mw *verbs_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int verbs_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int verbs_dealloc_mw(struct ibv_mw *mw);

/*
 * Copies port port_num's fabric page (control path, may block as hca_open() does).  Returns 0 or
 * a negative errno, -EINVAL for a port that is not there.
 */
int verbs_read_page(uint32_t port_num, struct fabric_page *page);

/* The GID table's entry, or NULL if it is empty or beyond the end. */
const struct fabric_gid *verbs_gid(const struct fabric_page *page, uint32_t index);
