// SPDX-License-Identifier: BSD-3-Clause
/* Endpoints that listen. */
#include <errno.h>
#include <stdlib.h>

#include "rpma/address.h"
#include "rpma/conn_req.h"
#include "rpma/log.h"

struct rpma_ep {
	struct rpma_peer *peer;
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
};

static int listen_at(struct rpma_ep *ep, const char *addr, const char *port)
{
	int ret;

	ep->events = rdma_create_event_channel();
	if (!ep->events)
		return PROVIDER_FAILED("rdma_create_event_channel()", errno);
	ret = address_bind(addr, port, ep->events, &ep->id);
	if (ret)
		goto no_id;
	if (!rdma_listen(ep->id, 0))
		return 0;
	ret = PROVIDER_FAILED("rdma_listen()", errno);
	(void)rdma_destroy_id(ep->id);
no_id:
	rdma_destroy_event_channel(ep->events);
	return ret;
}

int rpma_ep_listen(
	struct rpma_peer *peer, const char *addr, const char *port, struct rpma_ep **ep_ptr)
{
	struct rpma_ep *ep;
	int ret;

	if (!peer || !addr || !port || !ep_ptr)
		return RPMA_E_INVAL;
	ep = malloc(sizeof *ep);
	if (!ep)
		return RPMA_E_NOMEM;
	*ep = (struct rpma_ep){.peer = peer};
	ret = listen_at(ep, addr, port);
	if (ret) {
		free(ep);
		return ret;
	}
	LOG_NOTICE("listening at %s:%s", addr, port);
	*ep_ptr = ep;
	return 0;
}
RPMA_SINCE_0_10(rpma_ep_listen);

int rpma_ep_shutdown(struct rpma_ep **ep_ptr)
{
	struct rpma_ep *ep;
	int ret = 0;

	if (!ep_ptr)
		return RPMA_E_INVAL;
	ep = *ep_ptr;
	*ep_ptr = NULL;
	if (!ep)
		return 0;
	if (rdma_destroy_id(ep->id))
		ret = PROVIDER_FAILED("rdma_destroy_id()", errno);
	rdma_destroy_event_channel(ep->events);
	free(ep);
	return ret;
}
RPMA_SINCE_0_10(rpma_ep_shutdown);

int rpma_ep_get_fd(const struct rpma_ep *ep, int *fd)
{
	if (!ep || !fd)
		return RPMA_E_INVAL;
	*fd = ep->events->fd;
	return 0;
}
RPMA_SINCE_0_10(rpma_ep_get_fd);

int rpma_ep_next_conn_req(
	struct rpma_ep *ep, const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr)
{
	struct rdma_cm_event *event;

	if (!ep || !req_ptr)
		return RPMA_E_INVAL;
	if (!rdma_get_cm_event(ep->events, &event))
		return conn_req_from_event(ep->peer, event, cfg, req_ptr);
	if (errno == EAGAIN || errno == ENODATA)
		return RPMA_E_NO_EVENT;
	return PROVIDER_FAILED("rdma_get_cm_event()", errno);
}
RPMA_SINCE_0_10(rpma_ep_next_conn_req);
