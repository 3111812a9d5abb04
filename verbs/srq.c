// SPDX-License-Identifier: BSD-3-Clause
// Shared receive queues.
#include "verbs/context.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"

static void init_srq(
	struct verbs_srq *srq, struct ibv_context *context, struct ibv_pd *pd, void *srq_context)
{
	srq->srq.context = context;
	srq->srq.srq_context = srq_context;
	srq->srq.pd = pd;
	srq->srq.handle = hca_srq_num(srq->hca);
	pthread_mutex_init(&srq->srq.mutex, NULL);
	pthread_cond_init(&srq->srq.cond, NULL);
}

static struct ibv_srq *create(struct ibv_pd *pd, struct ibv_srq_attr *attr,
	const struct hca_srq_parts *parts, void *srq_context)
{
	struct verbs_srq *srq = calloc(1, sizeof(*srq));
	int rc;

	if (!srq)
		return fail_null(ENOMEM);
	rc = event_source_add(&srq->events);
	if (!rc)
		rc = hca_srq_create(
			to_pd(pd)->hca, attr, parts, event_cookie(&srq->events), &srq->hca);
	if (rc) {
		event_source_del(&srq->events);
		free(srq);
		return fail_null(rc);
	}
	init_srq(srq, pd->context, pd, srq_context);
	count_domain_user(pd, 1);
	return &srq->srq;
}

static const struct hca_srq_parts basic;

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	return create(pd, &init->attr, &basic, init->srq_context);
}

static bool parts_fit(const struct ibv_context *context, const struct ibv_srq_init_attr_ex *init)
{
	uint32_t mask = init->comp_mask;

	if (!is_of_another(context, init->pd) &&
		!(mask & IBV_SRQ_INIT_ATTR_CQ && is_of_another(context, init->cq)) &&
		!(mask & IBV_SRQ_INIT_ATTR_XRCD && is_of_another(context, init->xrcd)))
		return true;
	log_refusal("create_srq refused: its parts are of several contexts");
	return false;
}

struct ibv_srq *verbs_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *init)
{
	uint32_t mask = init->comp_mask;
	struct hca_srq_parts parts = basic;
	enum ibv_srq_type type = mask & IBV_SRQ_INIT_ATTR_TYPE ? init->srq_type : IBV_SRQT_BASIC;

	if (!(mask & IBV_SRQ_INIT_ATTR_PD) || mask >= IBV_SRQ_INIT_ATTR_RESERVED ||
		!parts_fit(context, init))
		return fail_null(EINVAL);
	if (type == IBV_SRQT_BASIC)
		return create(init->pd, &init->attr, &basic, init->srq_context);
	if (!(mask & IBV_SRQ_INIT_ATTR_CQ) || !init->cq)
		return fail_null(EINVAL);
	parts.cq = to_cq(init->cq)->hca;
	if (type == IBV_SRQT_XRC && mask & IBV_SRQ_INIT_ATTR_XRCD && init->xrcd)
		parts.xrcd = to_xrcd(init->xrcd)->hca;
	else if (type == IBV_SRQT_TM && mask & IBV_SRQ_INIT_ATTR_TM)
		parts.tm = &init->tm_cap;
	else
		return fail_null(EINVAL);
	return create(init->pd, &init->attr, &parts, init->srq_context);
}

int verbs_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
	*srq_num = hca_srq_num(to_srq(srq)->hca);
	return 0;
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int attr_mask)
{
	return to_errno(hca_srq_modify(to_srq(srq)->hca, attr, attr_mask));
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	hca_srq_query(to_srq(srq)->hca, attr);
	return 0;
}

static void wait_for_acks(struct verbs_srq *srq)
{
	pthread_mutex_lock(&srq->srq.mutex);
	while (srq->srq.events_completed != srq->events.async_count)
		pthread_cond_wait(&srq->srq.cond, &srq->srq.mutex);
	pthread_mutex_unlock(&srq->srq.mutex);
}

int ibv_destroy_srq(struct ibv_srq *ibsrq)
{
	struct verbs_srq *srq = to_srq(ibsrq);
	int rc = hca_srq_destroy(srq->hca);

	if (rc)
		return to_errno(rc);
	event_source_del(&srq->events);
	wait_for_acks(srq);
	count_domain_user(ibsrq->pd, -1);
	pthread_mutex_destroy(&ibsrq->mutex);
	pthread_cond_destroy(&ibsrq->cond);
	free(srq);
	return 0;
}

int verbs_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return to_errno(hca_post_srq_recv(to_srq(srq)->hca, wr, bad));
}

int verbs_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad)
{
	return to_errno(hca_srq_ops(to_srq(srq)->hca, wr, bad));
}
