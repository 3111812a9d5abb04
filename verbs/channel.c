// SPDX-License-Identifier: BSD-3-Clause
// Completion channels and their events.
#include "verbs/objects.h"

#include <pthread.h>
#include <stdlib.h>

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct verbs_channel *ch = calloc(1, sizeof(*ch));
	int rc;

	if (!ch)
		return fail_null(ENOMEM);
	rc = hca_channel_create(&ch->hca);
	if (rc) {
		free(ch);
		return fail_null(rc);
	}
	ch->ch.context = context;
	ch->ch.fd = hca_channel_fd(ch->hca);
	return &ch->ch;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	int rc = hca_channel_destroy(to_channel(channel)->hca);

	if (!rc)
		free(to_channel(channel));
	return to_errno(rc);
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct event_source *source;
	void *cookie;
	int rc;

	do {
		rc = hca_channel_get(to_channel(channel)->hca, &cookie);
		if (rc)
			return fail_minus_one(rc);
		source = event_source_count(cookie, EVENT_COMP);
	} while (!source);
	*cq = &container_of(source, struct verbs_cq, events)->cq;
	*cq_context = (*cq)->cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned nevents)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}
