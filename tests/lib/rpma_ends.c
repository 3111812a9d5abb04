// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/rpma_ends.h"

#include <poll.h>

#include "tests/lib/check.h"

static void must(int ret, const char *what)
{
	if (ret)
		die("%s: %s", what, rpma_err_2str(ret));
}

/* ---- a device that can less ---- */

static int (*real_query)(struct ibv_context *ctx, const struct ibv_query_device_ex_input *in,
	struct ibv_device_attr_ex *attr, size_t size);
static uint64_t hidden_caps;

static int query_without(struct ibv_context *ctx, const struct ibv_query_device_ex_input *in,
	struct ibv_device_attr_ex *attr, size_t size)
{
	int ret = real_query(ctx, in, attr, size);

	attr->device_cap_flags_ex &= ~hidden_caps;
	return ret;
}

void rp_hide_caps(uint64_t caps)
{
	struct ibv_context *ctx;
	struct verbs_context *v;

	must(rpma_utils_get_ibv_context(RP_ADDR, RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx), "context");
	v = verbs_get_ctx(ctx);
	if (!real_query)
		real_query = v->query_device_ex;
	hidden_caps = caps;
	v->query_device_ex = caps ? query_without : real_query;
}

/* ---- peers and connections ---- */

struct rpma_peer *rp_peer(void)
{
	struct ibv_context *ctx;
	struct rpma_peer *peer;

	must(rpma_utils_get_ibv_context(RP_ADDR, RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx), "context");
	must(rpma_peer_new(ctx, &peer), "peer");
	return peer;
}

struct rpma_ep *rp_listen(struct rpma_peer *peer)
{
	struct rpma_ep *ep;

	must(rpma_ep_listen(peer, RP_ADDR, RP_PORT, &ep), "listen");
	return ep;
}

bool rp_readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1 && p.revents & POLLIN;
}

enum rpma_conn_event rp_event(struct rpma_conn *conn)
{
	enum rpma_conn_event event;
	int fd;

	must(rpma_conn_get_event_fd(conn, &fd), "event fd");
	if (!rp_readable(fd, RP_WAIT_MS))
		die("no event comes");
	must(rpma_conn_next_event(conn, &event), "next event");
	return event;
}

void rp_expect(struct rpma_conn *conn, enum rpma_conn_event want)
{
	enum rpma_conn_event got = rp_event(conn);

	if (got != want)
		die("'%s' comes instead of '%s'", rpma_utils_conn_event_2str(got),
			rpma_utils_conn_event_2str(want));
}

struct rpma_conn *rp_call(struct rpma_peer *peer, const struct rpma_conn_cfg *cfg,
	const struct rpma_conn_private_data *pdata)
{
	struct rpma_conn_req *req;
	struct rpma_conn *conn;

	must(rpma_conn_req_new(peer, RP_ADDR, RP_PORT, cfg, &req), "request");
	must(rpma_conn_req_connect(&req, pdata, &conn), "connect");
	return conn;
}

struct rpma_conn *rp_answer(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
	const struct rpma_conn_private_data *pdata)
{
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	int fd;

	must(rpma_ep_get_fd(ep, &fd), "ep fd");
	if (!rp_readable(fd, RP_WAIT_MS))
		die("no request comes");
	must(rpma_ep_next_conn_req(ep, cfg, &req), "next request");
	must(rpma_conn_req_connect(&req, pdata, &conn), "accept");
	return conn;
}

void rp_pair(struct rpma_peer *peer, const struct rpma_conn_cfg *cfg, struct rp_pair *p)
{
	p->ep = rp_listen(peer);
	p->active = rp_call(peer, cfg, NULL);
	p->passive = rp_answer(p->ep, cfg, NULL);
	rp_expect(p->active, RPMA_CONN_ESTABLISHED);
	rp_expect(p->passive, RPMA_CONN_ESTABLISHED);
}

void rp_pair_end(struct rp_pair *p)
{
	CHECK_EQ(rpma_conn_disconnect(p->active), 0);
	rp_expect(p->passive, RPMA_CONN_CLOSED);
	CHECK_EQ(rpma_conn_disconnect(p->passive), 0);
	rp_expect(p->active, RPMA_CONN_CLOSED);
	CHECK_EQ(rpma_conn_delete(&p->active), 0);
	CHECK_EQ(rpma_conn_delete(&p->passive), 0);
	CHECK_EQ(rpma_ep_shutdown(&p->ep), 0);
	CHECK(!p->active && !p->passive && !p->ep);
}

struct ibv_wc rp_wc(struct rpma_cq *cq)
{
	double end = now_ms() + RP_WAIT_MS;
	struct ibv_wc wc;
	int ret, fd;

	for (;;) {
		ret = rpma_cq_get_wc(cq, 1, &wc, NULL);
		if (!ret)
			return wc;
		if (ret != RPMA_E_NO_COMPLETION || now_ms() > end)
			die("no completion comes: %s", rpma_err_2str(ret));
		CHECK_EQ(rpma_cq_get_fd(cq, &fd), 0);
		if (rp_readable(fd, RP_WAIT_MS) && rpma_cq_wait(cq) == RPMA_E_SHARED_CHANNEL)
			poll(NULL, 0, 1); /* the event is left to rpma_conn_wait() */
	}
}

struct rpma_cq *rp_cq(struct rpma_conn *conn)
{
	struct rpma_cq *cq = NULL;

	CHECK_EQ(rpma_conn_get_cq(conn, &cq), 0);
	return cq;
}

struct ibv_wc rp_done(struct rpma_conn *conn, const void *context, enum ibv_wc_status status)
{
	struct ibv_wc wc = rp_wc(rp_cq(conn));

	CHECK_EQ(wc.wr_id, (uintptr_t)context);
	CHECK_EQ(wc.status, status);
	return wc;
}

struct rpma_mr_remote *rp_remote(const struct rpma_mr_local *mr)
{
	struct rpma_mr_remote *remote;
	uint8_t desc[64];
	size_t size;

	must(rpma_mr_get_descriptor_size(mr, &size), "descriptor size");
	if (size > sizeof desc)
		die("a descriptor of %zu bytes", size);
	must(rpma_mr_get_descriptor(mr, desc), "descriptor");
	must(rpma_mr_remote_from_descriptor(desc, size, &remote), "remote region");
	return remote;
}
