// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/cm_ends.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>

#include "tests/lib/check.h"

struct sockaddr *cm_addr4(uint16_t port)
{
	static struct sockaddr_in sin;

	sin = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return (struct sockaddr *)&sin;
}

struct sockaddr *cm_addr6(uint16_t port)
{
	static struct sockaddr_in6 sin6;

	sin6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
	sin6.sin6_addr = in6addr_loopback;
	return (struct sockaddr *)&sin6;
}

bool cm_readable(struct rdma_event_channel *ch, int ms)
{
	struct pollfd p = {.fd = ch->fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1 && p.revents == POLLIN;
}

struct rdma_cm_event *cm_take(struct rdma_event_channel *ch, enum rdma_cm_event_type want)
{
	struct rdma_cm_event *e;

	if (!cm_readable(ch, CM_WAIT_MS))
		die("no event comes; %s is due", rdma_event_str(want));
	if (rdma_get_cm_event(ch, &e))
		die("rdma_get_cm_event");
	if (e->event != want)
		die("%s (%d) comes instead of %s", rdma_event_str(e->event), e->status,
			rdma_event_str(want));
	return e;
}

int cm_expect(struct rdma_event_channel *ch, enum rdma_cm_event_type want)
{
	struct rdma_cm_event *e = cm_take(ch, want);
	int status = e->status;

	CHECK_EQ(rdma_ack_cm_event(e), 0);
	return status;
}

struct rdma_event_channel *cm_channel(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();

	if (!ch)
		die("rdma_create_event_channel");
	return ch;
}

struct rdma_cm_id *cm_id(struct rdma_event_channel *ch)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(ch, &id, NULL, RDMA_PS_TCP))
		die("rdma_create_id");
	return id;
}

struct rdma_cm_id *cm_listener(struct rdma_event_channel *ch, int backlog, uint16_t *port)
{
	struct rdma_cm_id *id = cm_id(ch);

	if (rdma_bind_addr(id, cm_addr4(0)) || rdma_listen(id, backlog))
		die("cannot listen");
	*port = ntohs(rdma_get_src_port(id));
	return id;
}

void cm_make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
	};

	if (rdma_create_qp(id, NULL, &init))
		die("rdma_create_qp");
}

struct rdma_cm_id *cm_resolved(struct rdma_event_channel *ch, struct sockaddr *to, bool qp)
{
	struct rdma_cm_id *id = cm_id(ch);

	if (rdma_resolve_addr(id, NULL, to, 1000))
		die("rdma_resolve_addr");
	cm_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(id, 1000))
		die("rdma_resolve_route");
	cm_expect(ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	if (qp)
		cm_make_qp(id);
	return id;
}

struct cm_conn cm_connect(
	struct rdma_event_channel *ach, struct rdma_event_channel *pch, uint16_t port, bool qp)
{
	struct cm_conn c = {.active = cm_resolved(ach, cm_addr4(port), qp)};
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7, .qp_num = 77};
	struct rdma_cm_event *e;

	if (rdma_connect(c.active, &param))
		die("rdma_connect");
	e = cm_take(pch, RDMA_CM_EVENT_CONNECT_REQUEST);
	c.passive = e->id;
	rdma_ack_cm_event(e);
	if (qp)
		cm_make_qp(c.passive);
	if (rdma_accept(c.passive, &param))
		die("rdma_accept");
	if (!qp) {
		cm_expect(ach, RDMA_CM_EVENT_CONNECT_RESPONSE);
		if (rdma_establish(c.active))
			die("rdma_establish");
	} else {
		cm_expect(ach, RDMA_CM_EVENT_ESTABLISHED);
	}
	cm_expect(pch, RDMA_CM_EVENT_ESTABLISHED);
	return c;
}

void cm_end(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	CHECK_EQ(rdma_destroy_id(id), 0);
}
