// SPDX-License-Identifier: BSD-3-Clause
/* What librdmacm got after rdma-core 44: events of the program's own, addresses for an id. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/cm_ends.h"

/* As its newer header has them. */
enum { ADDRINFO_RESOLVED = 16, ADDRINFO_ERROR, USER, INTERNAL };
enum { SA = 0x10, DNS = 0x20 };
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
	const struct rdma_addrinfo *hints);
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
int rdma_write_cm_event(
	struct rdma_cm_id *id, enum rdma_cm_event_type event, int status, uint64_t arg);

static struct rdma_event_channel *ch;

static void own_events(void)
{
	struct rdma_cm_id *id = cm_id(ch);
	struct rdma_cm_event *e;
	uint64_t arg;

	check_case("the program's own events");
	for (int type = USER; type <= INTERNAL; type++) {
		CHECK_EQ(rdma_write_cm_event(id, (enum rdma_cm_event_type)type, -7 - type,
				 0x1122334455667788u + type),
			0);
		e = cm_take(ch, (enum rdma_cm_event_type)type);
		memcpy(&arg, &e->param, sizeof arg);
		CHECK_EQ(arg, 0x1122334455667788u + type);
		CHECK_EQ(e->status, -7 - type);
		CHECK(e->id == id);
		rdma_ack_cm_event(e);
	}
	CHECK_FAILS(rdma_write_cm_event(id, RDMA_CM_EVENT_ESTABLISHED, 0, 0), EINVAL);
	CHECK(!strcmp(rdma_event_str((enum rdma_cm_event_type)USER), "RDMA_CM_EVENT_USER"));
	CHECK_EQ(rdma_write_cm_event(id, (enum rdma_cm_event_type)USER, 0, 1), 0);
	cm_end(id); /* takes it back */
	CHECK(!cm_readable(ch, 0));
}

static void addresses(void)
{
	struct rdma_addrinfo hints = {.ai_flags = SA, .ai_port_space = RDMA_PS_TCP}, *info;
	const struct sockaddr_in *to;
	struct rdma_cm_id *id = cm_id(ch);

	check_case("addresses");
	CHECK_FAILS(rdma_query_addrinfo(id, &info), ENODATA);
	CHECK_FAILS(rdma_resolve_addrinfo(id, NULL, NULL, NULL), EINVAL);
	CHECK_FAILS(rdma_resolve_addrinfo(id, NULL, "0x1060001", &hints), EOPNOTSUPP);
	hints.ai_flags = SA | DNS;
	CHECK_FAILS(rdma_resolve_addrinfo(id, "127.0.0.1", "7", &hints), EINVAL);
	hints.ai_flags = RAI_NUMERICHOST | DNS;
	CHECK_EQ(rdma_resolve_addrinfo(id, "no number", "7", &hints), 0);
	CHECK(cm_expect(ch, (enum rdma_cm_event_type)ADDRINFO_ERROR) < 0);
	CHECK_FAILS(rdma_query_addrinfo(id, &info), ENODATA);
	CHECK_EQ(rdma_resolve_addrinfo(id, "127.0.0.1", "7471", NULL), 0);
	CHECK_EQ(cm_expect(ch, (enum rdma_cm_event_type)ADDRINFO_RESOLVED), 0);
	for (int i = 0; i < 2; i++) { /* each time a copy */
		if (rdma_query_addrinfo(id, &info))
			die("rdma_query_addrinfo");
		to = (const struct sockaddr_in *)info->ai_dst_addr;
		CHECK_EQ(info->ai_dst_len, sizeof *to);
		CHECK_EQ(to->sin_family, AF_INET);
		CHECK_EQ(ntohs(to->sin_port), 7471);
		CHECK_EQ(ntohl(to->sin_addr.s_addr), INADDR_LOOPBACK);
		CHECK_EQ(info->ai_port_space, RDMA_PS_TCP);
		CHECK_EQ(info->ai_qp_type, IBV_QPT_RC);
		CHECK_EQ(rdma_resolve_addr(i ? id : cm_id(ch), NULL, info->ai_dst_addr, 100), 0);
		CHECK_EQ(cm_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
		rdma_freeaddrinfo(info);
	}
	cm_end(id);
}

int main(void)
{
	ch = cm_channel();
	own_events();
	addresses();
	return check_result();
}
