// SPDX-License-Identifier: BSD-3-Clause
// Queue pairs.
#include "verbs/context.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static void init_qp(struct ibv_qp *qp, struct ibv_context *context, struct ibv_pd *pd,
	const struct ibv_qp_init_attr *init)
{
	qp->context = context;
	qp->qp_context = init->qp_context;
	qp->pd = pd;
	qp->send_cq = init->send_cq;
	qp->recv_cq = init->recv_cq;
	qp->srq = init->srq;
	qp->qp_type = init->qp_type;
	qp->state = IBV_QPS_RESET;
	pthread_mutex_init(&qp->mutex, NULL);
	pthread_cond_init(&qp->cond, NULL);
}

static bool parts_fit(const struct ibv_pd *pd, const struct ibv_context *context,
	const struct ibv_qp_init_attr *init, const struct ibv_xrcd *xrcd)
{
	if (!is_of_another(context, pd) && !is_of_another(context, init->send_cq) &&
		!is_of_another(context, init->recv_cq) && !is_of_another(context, init->srq) &&
		!is_of_another(context, xrcd))
		return true;
	log_refusal("create_qp refused: its parts are of several contexts");
	return false;
}

static struct ibv_qp *create(struct ibv_pd *pd, struct ibv_context *context,
	struct ibv_qp_init_attr *init, struct ibv_xrcd *xrcd, uint32_t create_flags)
{
	const struct hca_qp_parts parts = {
		.send_cq = init->send_cq ? to_cq(init->send_cq)->hca : NULL,
		.recv_cq = init->recv_cq ? to_cq(init->recv_cq)->hca : NULL,
		.srq = init->srq ? to_srq(init->srq)->hca : NULL,
		.xrcd = xrcd ? to_xrcd(xrcd)->hca : NULL,
		.create_flags = create_flags,
	};
	struct verbs_qp *qp;
	int rc;

	if (!parts_fit(pd, context, init, xrcd))
		return fail_null(EINVAL);
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return fail_null(ENOMEM);
	rc = event_source_add(&qp->events);
	if (!rc)
		rc = hca_qp_create(pd ? to_pd(pd)->hca : NULL, init, &parts,
			event_cookie(&qp->events), &qp->hca);
	if (rc) {
		event_source_del(&qp->events);
		free(qp);
		return fail_null(rc);
	}
	init_qp(&qp->qp, context, pd, init);
	if (pd)
		count_domain_user(pd, 1);
	qp->qp.qp_num = hca_qp_num(qp->hca);
	qp->qp.handle = qp->qp.qp_num;
	return &qp->qp;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	return create(pd, pd->context, init, NULL, 0);
}

/* The members up to comp_mask are those of ibv_qp_init_attr. */
struct ibv_qp *verbs_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_MAX_TSO_HEADER |
			       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	uint32_t mask = init->comp_mask;
	struct ibv_qp_init_attr basic;
	struct ibv_qp *qp;
	int rc;

	if (mask & ~known)
		return fail_null(EOPNOTSUPP);
	if (!(mask & (IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD)))
		return fail_null(EINVAL);
	if (mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER && init->max_tso_header)
		return fail_null(EOPNOTSUPP);
	memcpy(&basic, init, sizeof(basic));
	qp = create(mask & IBV_QP_INIT_ATTR_PD ? init->pd : NULL, context, &basic,
		mask & IBV_QP_INIT_ATTR_XRCD ? init->xrcd : NULL,
		mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? init->create_flags : 0);
	if (!qp)
		return NULL;
	rc = mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS
		     ? qp_ex_init(to_qp(qp), init->send_ops_flags, basic.cap.max_inline_data)
		     : 0;
	if (rc) {
		ibv_destroy_qp(qp);
		return fail_null(rc);
	}
	init->cap = basic.cap;
	return qp;
}

/* Another handle of an XRC target QP, which lives until the last one is destroyed. */
struct ibv_qp *verbs_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	const uint32_t needed =
		IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_XRC_RECV};
	struct verbs_qp *qp;
	int rc;

	if ((attr->comp_mask & needed) != needed || attr->comp_mask >= IBV_QP_OPEN_ATTR_RESERVED ||
		attr->qp_type != IBV_QPT_XRC_RECV || is_of_another(context, attr->xrcd))
		return fail_null(EINVAL);
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return fail_null(ENOMEM);
	rc = hca_qp_open(to_xrcd(attr->xrcd)->hca, attr->qp_num, &qp->hca);
	if (rc) {
		free(qp);
		return fail_null(rc);
	}
	if (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT)
		init.qp_context = attr->qp_context;
	init_qp(&qp->qp, context, NULL, &init);
	qp->qp.state = hca_qp_state(qp->hca);
	qp->qp.qp_num = qp->qp.handle = attr->qp_num;
	return &qp->qp;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	int rc = hca_qp_modify(to_qp(qp)->hca, attr, attr_mask);

	if (!rc && attr_mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	return to_errno(rc);
}

int ibv_query_qp(
	struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask, struct ibv_qp_init_attr *init)
{
	int rc = hca_qp_query(to_qp(qp)->hca, attr, init);

	(void)attr_mask; /* a hint what the program wants; all of it is there */
	if (rc)
		return to_errno(rc);
	init->qp_context = qp->qp_context;
	init->send_cq = qp->send_cq;
	init->recv_cq = qp->recv_cq;
	init->srq = qp->srq;
	init->qp_type = qp->qp_type;
	qp->state = attr->qp_state;
	return 0;
}

/* Movers make the last bytes visible last, but promise no order among the others. */
int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp, (void)op, (void)flags;
	return 0;
}

static void wait_for_acks(struct verbs_qp *qp)
{
	pthread_mutex_lock(&qp->qp.mutex);
	while (qp->qp.events_completed != qp->events.async_count)
		pthread_cond_wait(&qp->qp.cond, &qp->qp.mutex);
	pthread_mutex_unlock(&qp->qp.mutex);
}

int ibv_destroy_qp(struct ibv_qp *ibqp)
{
	struct verbs_qp *qp = to_qp(ibqp);
	int rc = hca_qp_destroy(qp->hca);

	if (rc)
		return to_errno(rc);
	event_source_del(&qp->events);
	wait_for_acks(qp);
	if (ibqp->pd)
		count_domain_user(ibqp->pd, -1);
	pthread_mutex_destroy(&ibqp->mutex);
	pthread_cond_destroy(&ibqp->cond);
	free(qp->builder);
	free(qp);
	return 0;
}

int verbs_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return to_errno(hca_post_send(to_qp(qp)->hca, wr, bad));
}

int verbs_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return to_errno(hca_post_recv(to_qp(qp)->hca, wr, bad));
}
