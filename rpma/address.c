// SPDX-License-Identifier: BSD-3-Clause
/* Names to addresses, ids at them, and the device that has an address. */
#include "rpma/address.h"

#include <errno.h>
#include <netdb.h>

#include "rpma/log.h"

static int look_up(const char *addr, const char *port, bool passive, struct rdma_addrinfo **list)
{
	struct rdma_addrinfo hints = {
		.ai_flags = passive ? RAI_PASSIVE : 0,
		.ai_qp_type = IBV_QPT_RC,
		.ai_port_space = RDMA_PS_TCP,
	};
	int ret = rdma_getaddrinfo(addr, port, &hints, list);

	if (!ret)
		return 0;
	if (ret == EAI_MEMORY)
		return RPMA_E_NOMEM;
	LOG_ERROR("%s:%s is no address: %s", addr, port ? port : "",
		ret == -1 ? "rdma_getaddrinfo() failed" : gai_strerror(ret));
	return RPMA_E_PROVIDER;
}

static int create(struct rdma_event_channel *channel, struct rdma_cm_id **id)
{
	if (!rdma_create_id(channel, id, NULL, RDMA_PS_TCP))
		return 0;
	return errno == ENOMEM ? RPMA_E_NOMEM : PROVIDER_FAILED("rdma_create_id()", errno);
}

static int give_up(struct rdma_cm_id *id, const char *call)
{
	int ret = PROVIDER_FAILED(call, errno);

	(void)rdma_destroy_id(id);
	return ret;
}

int address_reach(const char *addr, const char *port, int timeout_ms, struct rdma_cm_id **out)
{
	struct rdma_addrinfo *list;
	struct rdma_cm_id *id;
	int ret = look_up(addr, port, false, &list);

	if (ret)
		return ret;
	ret = create(NULL, &id);
	if (ret)
		goto free_list;
	if (rdma_resolve_addr(id, list->ai_src_addr, list->ai_dst_addr, timeout_ms))
		ret = give_up(id, "rdma_resolve_addr()");
	else if (port && rdma_resolve_route(id, timeout_ms))
		ret = give_up(id, "rdma_resolve_route()");
	else
		*out = id;
free_list:
	rdma_freeaddrinfo(list);
	return ret;
}

int address_bind(const char *addr, const char *port, struct rdma_event_channel *channel,
	struct rdma_cm_id **out)
{
	struct rdma_addrinfo *list;
	struct rdma_cm_id *id;
	int ret = look_up(addr, port, true, &list);

	if (ret)
		return ret;
	ret = create(channel, &id);
	if (ret)
		goto free_list;
	if (rdma_bind_addr(id, list->ai_src_addr))
		ret = give_up(id, "rdma_bind_addr()");
	else
		*out = id;
free_list:
	rdma_freeaddrinfo(list);
	return ret;
}

int rpma_utils_get_ibv_context(
	const char *addr, enum rpma_util_ibv_context_type type, struct ibv_context **ibv_ctx_ptr)
{
	struct ibv_context *verbs;
	struct rdma_cm_id *id;
	int ret;

	if (!addr || !ibv_ctx_ptr)
		return RPMA_E_INVAL;
	if (type == RPMA_UTIL_IBV_CONTEXT_LOCAL)
		ret = address_bind(addr, NULL, NULL, &id);
	else if (type == RPMA_UTIL_IBV_CONTEXT_REMOTE)
		ret = address_reach(addr, NULL, RPMA_DEFAULT_TIMEOUT_MS, &id);
	else
		return RPMA_E_INVAL;
	if (ret)
		return ret;
	verbs = id->verbs;
	(void)rdma_destroy_id(id);
	if (!verbs) { /* the wildcard address */
		LOG_ERROR("%s belongs to no device", addr);
		return RPMA_E_PROVIDER;
	}
	*ibv_ctx_ptr = verbs;
	return 0;
}
RPMA_SINCE_0_10(rpma_utils_get_ibv_context);
