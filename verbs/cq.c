// SPDX-License-Identifier: BSD-3-Clause
// Completion queues.
#include "verbs/context.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"

static void init_cq(struct ibv_cq *cq, struct ibv_context *context,
	struct ibv_comp_channel *channel, void *cq_context, int cqe)
{
	cq->context = context;
	cq->channel = channel;
	cq->cq_context = cq_context;
	cq->cqe = cqe;
	pthread_mutex_init(&cq->mutex, NULL);
	pthread_cond_init(&cq->cond, NULL);
}

/* refcnt is public; the HCA keeps its own count. */
static void count_channel_user(struct ibv_comp_channel *channel, int change)
{
	if (!channel)
		return;
	pthread_mutex_lock(&channel->context->mutex);
	channel->refcnt += change;
	pthread_mutex_unlock(&channel->context->mutex);
}

struct verbs_cq *verbs_make_cq(struct ibv_context *context, int cqe, void *cq_context,
	struct ibv_comp_channel *channel, int comp_vector, unsigned flags)
{
	struct verbs_cq *cq;
	int rc;

	if (comp_vector < 0 || comp_vector >= context->num_comp_vectors)
		return fail_null(log_refused(EINVAL,
			"create_cq refused: comp_vector %d, and there are %d, from 0 "
			"(num_comp_vectors)",
			comp_vector, context->num_comp_vectors));
	if (is_of_another(context, channel)) /* as the kernel, which knows it by its descriptor */
		return fail_null(log_refused(
			EBADF, "create_cq refused: the completion channel is of another context"));
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return fail_null(ENOMEM);
	rc = event_source_add(&cq->events);
	if (!rc)
		rc = hca_cq_create(&cqe, channel ? to_channel(channel)->hca : NULL, flags,
			event_cookie(&cq->events), &cq->hca);
	if (rc) {
		event_source_del(&cq->events);
		free(cq);
		return fail_null(rc);
	}
	cq->cq.handle = (uint32_t)cq->events.id;
	init_cq(&cq->cq, context, channel, cq_context, cqe);
	count_channel_user(channel, 1);
	return cq;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
	struct ibv_comp_channel *channel, int comp_vector)
{
	struct verbs_cq *cq = verbs_make_cq(context, cqe, cq_context, channel, comp_vector, 0);

	return cq ? &cq->cq : NULL;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	int rc = hca_cq_resize(to_cq(cq)->hca, &cqe);

	if (!rc)
		cq->cqe = cqe;
	return to_errno(rc);
}

int verbs_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	if (attr->attr_mask != IBV_CQ_ATTR_MODERATE)
		return to_errno(log_refused(
			attr->attr_mask >= IBV_CQ_ATTR_RESERVED ? -EOPNOTSUPP : -EINVAL,
			"modify_cq refused: attr_mask %#x is not IBV_CQ_ATTR_MODERATE alone",
			attr->attr_mask));
	return to_errno(
		hca_cq_moderate(to_cq(cq)->hca, attr->moderate.cq_count, attr->moderate.cq_period));
}

/* Sleeps until the program has acknowledged every event that it was given for this CQ. */
static void wait_for_acks(struct verbs_cq *cq)
{
	pthread_mutex_lock(&cq->cq.mutex);
	while (cq->cq.comp_events_completed != cq->events.comp_count ||
		cq->cq.async_events_completed != cq->events.async_count)
		pthread_cond_wait(&cq->cq.cond, &cq->cq.mutex);
	pthread_mutex_unlock(&cq->cq.mutex);
}

int ibv_destroy_cq(struct ibv_cq *ibcq)
{
	struct verbs_cq *cq = to_cq(ibcq);
	int rc = hca_cq_close(cq->hca);

	if (rc)
		return to_errno(rc);
	event_source_del(&cq->events);
	wait_for_acks(cq);
	hca_cq_free(cq->hca);
	count_channel_user(ibcq->channel, -1);
	count_domain_user(cq->domain, -1);
	pthread_mutex_destroy(&ibcq->mutex);
	pthread_cond_destroy(&ibcq->cond);
	free(cq);
	return 0;
}

int verbs_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	return hca_cq_poll(to_cq(cq)->hca, n, wc);
}

int verbs_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return to_errno(hca_cq_arm(to_cq(cq)->hca, solicited_only));
}
