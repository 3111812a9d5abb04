// SPDX-License-Identifier: BSD-3-Clause
// Async events.
#include "verbs/objects.h"

#include <pthread.h>

enum element { ELEMENT_PORT, ELEMENT_CQ, ELEMENT_QP, ELEMENT_SRQ };

static enum element element_of(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return ELEMENT_CQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return ELEMENT_QP;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return ELEMENT_SRQ;
	default:
		return ELEMENT_PORT;
	}
}

/* False if the event's object has been destroyed since: then there is no event. */
static bool fill_event(struct ibv_async_event *event, enum ibv_event_type type, void *cookie)
{
	enum element element = element_of(type);
	struct event_source *source = NULL;

	if (element != ELEMENT_PORT) {
		source = event_source_count(cookie, EVENT_ASYNC);
		if (!source)
			return false;
	}
	event->event_type = type;
	if (element == ELEMENT_CQ)
		event->element.cq = &container_of(source, struct verbs_cq, events)->cq;
	else if (element == ELEMENT_QP)
		event->element.qp = &container_of(source, struct verbs_qp, events)->qp;
	else if (element == ELEMENT_SRQ)
		event->element.srq = &container_of(source, struct verbs_srq, events)->srq;
	else
		event->element.port_num = 1;
	return true;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	enum ibv_event_type type;
	void *cookie;
	int rc;

	(void)context;
	do {
		rc = hca_async_get(&type, &cookie);
		if (rc)
			return fail_minus_one(rc);
	} while (!fill_event(event, type, cookie));
	return 0;
}

static void ack(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	++*completed;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;

	switch (element_of(event->event_type)) {
	case ELEMENT_CQ:
		ack(&cq->mutex, &cq->cond, &cq->async_events_completed);
		break;
	case ELEMENT_QP:
		ack(&qp->mutex, &qp->cond, &qp->events_completed);
		break;
	case ELEMENT_SRQ:
		ack(&srq->mutex, &srq->cond, &srq->events_completed);
		break;
	case ELEMENT_PORT:
		break;
	}
}
