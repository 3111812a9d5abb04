// SPDX-License-Identifier: BSD-3-Clause
/* Endpoints: an id with its QP in one call. */
#include "rdmacm/rdmacm.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

enum { RESOLVE_TIMEOUT_MS = 2000 };

static int remember(struct ident *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
	const struct ibv_qp_init_attr *init)
{
	if (res->ai_connect_len) {
		id->connect = malloc(res->ai_connect_len);
		if (!id->connect)
			return -ENOMEM;
		memcpy(id->connect, res->ai_connect, res->ai_connect_len);
		id->connect_len = res->ai_connect_len;
	}
	if (init && res->ai_flags & RAI_PASSIVE) {
		id->ep_qp_attr = malloc(sizeof *init);
		if (!id->ep_qp_attr)
			return -ENOMEM;
		*id->ep_qp_attr = *init;
		id->ep_qp_attr->qp_type = res->ai_qp_type;
		id->ep_pd = pd;
	}
	return 0;
}

static int prepare(struct rdma_cm_id *id, struct rdma_addrinfo *res, struct ibv_pd *pd,
	struct ibv_qp_init_attr *init)
{
	if (res->ai_flags & RAI_PASSIVE)
		return rdma_bind_addr(id, res->ai_src_addr);
	if (rdma_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr, RESOLVE_TIMEOUT_MS))
		return -1;
	if (!(res->ai_flags & RAI_NOROUTE) && rdma_resolve_route(id, RESOLVE_TIMEOUT_MS))
		return -1;
	if (!init)
		return 0;
	init->qp_type = res->ai_qp_type;
	return rdma_create_qp(id, pd, init);
}

int rdma_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *res, struct ibv_pd *pd,
	struct ibv_qp_init_attr *init)
{
	struct rdma_cm_id *id;
	int ret = rdma_create_id(NULL, &id, NULL, res->ai_port_space);

	if (ret)
		return ret;
	id->qp_type = res->ai_qp_type;
	ret = result(remember(to_ident(id), res, pd, init));
	if (!ret)
		ret = prepare(id, res, pd, init);
	if (ret) {
		int saved = errno;

		rdma_destroy_ep(id);
		errno = saved;
		return -1;
	}
	if (id->event) {
		rdma_ack_cm_event(id->event);
		id->event = NULL;
	}
	*out = id;
	return 0;
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}

int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **out)
{
	struct ident *l = to_ident(listen);
	struct rdma_cm_event *event;

	if (!l->sync)
		return fail(log_refused(EINVAL,
			"rdma_get_request refused: the id has an event channel of the program's, "
			"where rdma_get_cm_event takes RDMA_CM_EVENT_CONNECT_REQUEST"));
	if (listen->event) {
		rdma_ack_cm_event(listen->event);
		listen->event = NULL;
	}
	if (rdma_get_cm_event(listen->channel, &event))
		return -1;
	if (event->status || event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		int err = event->status ? abs(event->status) : EINVAL;

		rdma_ack_cm_event(event);
		return fail(err);
	}
	if (l->ep_qp_attr) {
		struct ibv_qp_init_attr init = *l->ep_qp_attr;

		if (rdma_create_qp(event->id, l->ep_pd, &init)) {
			struct rdma_cm_id *id = event->id;
			int saved = errno;

			rdma_reject(id, NULL, 0);
			rdma_ack_cm_event(event);
			rdma_destroy_id(id);
			return fail(saved);
		}
	}
	*out = event->id;
	(*out)->event = event;
	return 0;
}
