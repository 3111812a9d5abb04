// SPDX-License-Identifier: BSD-3-Clause
/* Addresses, domains and queues: which ones connections may have. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

static struct tx_world w;
static ti_cq_handle_t cq;

/* ---- a connection that carries a message each way ---- */

static ti_conn_profile_t profile(const struct tx_end *e)
{
	ti_conn_profile_t prof = {.conn = e->conn};
	uint32_t bytes = sizeof prof;

	TX_IS(tx->io_ctl(e->w->ti, TI_GET_CONN_PROFILE, &bytes, &prof), TI_SUCCESS);
	CHECK_EQ(bytes, sizeof prof);
	return prof;
}

static void message(struct tx_end *from, struct tx_end *to)
{
	ti_data_element_t *e, *m = tx_message(from->w, "hello", 6);

	m->msg_opt |= TI_OPT_FENCE;
	TX_IS(tx->msg_send(from->conn, m), TI_SUCCESS);
	e = tx_one(from->comp.h_send_cq, TI_SUCCESS);
	CHECK(e == m);
	tx_put(from->w->pool, e);
	e = tx_one(to->comp.h_recv_cq, TI_SUCCESS);
	CHECK(!strcmp(e->local_data_desc->vaddr, "hello"));
	tx_put(to->w->pool, e);
}

/* Connects within w, whose endpoints, domain and queues are as the caller made them. */
static void talk(struct tx_end *a, struct tx_end *p)
{
	ti_conn_profile_t prof;

	a->receives = p->receives = 2;
	a->done = p->done = (struct tx_count)TX_COUNT;
	tx_connect(a, p);
	message(a, p);
	message(p, a);
	prof = profile(a);
	CHECK_EQ(prof.state, TI_CONN_ESTABLISHED);
	CHECK_EQ(prof.sends, 1);
	CHECK_EQ(prof.recvs, 1);
	CHECK_EQ(prof.sent_bytes, 6);
	CHECK_EQ(prof.received_bytes, 6);
	CHECK_EQ(prof.posted, 1);
	CHECK_EQ(prof.errors, 0);
	CHECK_EQ(prof.remote_port, w.port);
	CHECK_EQ(profile(p).local_port, w.port);
	CHECK_EQ(profile(p).remote_port, prof.local_port);
	tx_disconnect(a);
	tx_disconnect(p);
	tx_put(w.pool, tx_poll(a->comp.h_recv_cq, 1 + (a->comp.h_recv_cq == p->comp.h_recv_cq)));
	if (a->comp.h_recv_cq != p->comp.h_recv_cq)
		tx_put(w.pool, tx_poll(p->comp.h_recv_cq, 1));
}

static void defaults(struct tx_end *a, struct tx_end *p)
{
	tx_defaults(a, &w, tx_cq(&w, 64));
	tx_defaults(p, &w, tx_cq(&w, 64));
}

/* ---- addresses ---- */

static ti_endpoint_handle_t endpoint(const ti_inet_addr_t *addr, ti_port_t port)
{
	ti_endpoint_handle_t ep;

	TX_IS(tx->create_endpoint(w.ti, (ti_inet_addr_t *)addr, port, &ep), TI_SUCCESS);
	return ep;
}

static void ipv6(void)
{
	ti_inet_addr_t addr = {.IP_addr_type = TI_ADDR_IPV6, .inet_u.in6 = IN6ADDR_LOOPBACK_INIT};
	ti_endpoint_handle_t ep = w.ep, any = w.any;
	struct tx_end a, p;

	check_case("IPv6");
	if (!has_ipv6())
		return;
	w.ep = endpoint(&addr, w.port);
	w.any = endpoint(&addr, 0);
	defaults(&a, &p);
	talk(&a, &p);
	TX_IS(tx->destroy_endpoint(w.ep), TI_SUCCESS);
	TX_IS(tx->destroy_endpoint(w.any), TI_SUCCESS);
	w.ep = ep;
	w.any = any;
}

/* The text's order of bytes. */
static void host_order(void)
{
	uint32_t on = 1, off = 0, bytes = sizeof on;
	ti_endpoint_handle_t any = w.any;
	ti_inet_addr_t addr;
	struct tx_end a, p;

	check_case("addresses in host order");
	SET_IPV4_ADDR(addr, INADDR_LOOPBACK);
	TX_IS(tx->io_ctl(w.ti, TI_SET_ADDR_ORDER, &bytes, &on), TI_SUCCESS);
	w.any = endpoint(&addr, 0);
	TX_IS(tx->io_ctl(w.ti, TI_SET_ADDR_ORDER, &bytes, &off), TI_SUCCESS);
	defaults(&a, &p);
	talk(&a, &p);
	w.any = any;
}

static void no_mapping(void)
{
	ti_endpoint_handle_t ep = (void *)1;
	ti_inet_addr_t addr;

	check_case("no mapping");
	SET_IPV4_ADDR(addr, inet_addr("203.0.113.1"));
	TX_IS(tx->create_endpoint(w.ti, &addr, 0, &ep), TI_ERROR);
	CHECK(!ep);
	addr.IP_addr_type = (ti_addr_fmt_t)7;
	TX_IS(tx->create_endpoint(w.ti, &addr, 0, &ep), TI_INVALID_PARAMETER);
}

/* A listener, and its domain, at 0.0.0.0. */
static void wildcard(void)
{
	ti_endpoint_handle_t zero, pd_ep = w.ep;
	struct tx_end a, p;
	ti_inet_addr_t addr;
	ti_conn_info_t info = {.pdh = w.pd, .conn_request_cb = tx_accept};
	ti_conn_handle_t l, h;

	check_case("any address");
	SET_IPV4_ADDR(addr, htonl(INADDR_ANY));
	zero = endpoint(&addr, w.port);
	TX_IS(tx->create_pd(w.ti, zero, &info.pdh), TI_SUCCESS);
	defaults(&a, &p);
	info.src_ep = zero;
	info.context = &p;
	TX_IS(tx->listen(w.ti, &p.attr, &info, NULL, &l), TI_SUCCESS);
	info = (ti_conn_info_t){.src_ep = w.any,
		.dst_ep = pd_ep,
		.pdh = w.pd,
		.conn_request_cb = tx_accept,
		.context = &a};
	TX_IS(tx->connect(w.ti, &a.attr, &info, NULL, &h), TI_SUCCESS);
	tx_await(&a.done, 1);
	tx_await(&p.done, 1);
	TX_IS(a.status, TI_SUCCESS);
	TX_IS(p.status, TI_SUCCESS);
	tx_disconnect(&a);
	tx_disconnect(&p);
	a.conn = l;
	tx_disconnect(&a);
}

/* ---- domains and queues ---- */

/* The same pool is used in two domains; neither may be another service's. */
static void two_domains(void)
{
	ti_pd_handle_t first = w.pd;
	struct tx_end a, p;

	check_case("two domains");
	defaults(&a, &p);
	talk(&a, &p);
	TX_IS(tx->create_pd(w.ti, w.ep, &w.pd), TI_SUCCESS);
	talk(&a, &p);
	TX_IS(tx->destroy_pd(w.pd), TI_SUCCESS);
	w.pd = first;
}

static void queue_for_each_direction(void)
{
	struct tx_end a, p;

	check_case("a queue for each direction");
	defaults(&a, &p);
	a.comp.h_recv_cq = tx_cq(&w, 64);
	p.comp.h_recv_cq = tx_cq(&w, 64);
	talk(&a, &p);
}

/* ---- accept()'s parameters ---- */

static struct {
	struct tx_count n;
	ti_conn_request_t req;
	ti_comp_info_t *accepts;
} asked = {.n = TX_COUNT}, answered = {.n = TX_COUNT};

static void keep(ti_conn_request_t *req)
{
	asked.req = *req;
	tx_add(&asked.n, 1);
}

static char reply[200];

static void keep_answer(ti_conn_request_t *req)
{
	answered.req = *req;
	if (req->private_data)
		memcpy(reply, req->private_data, req->private_data_len);
	TX_IS(tx->accept(req, 0, answered.accepts, NULL), TI_SUCCESS);
	tx_add(&answered.n, 1);
}

/* What is refused leaves the request as it was; without data of its own the answer is listen()'s.
 */
static void accepted_badly(void)
{
	static char data[200];
	ti_comp_info_t mine = {.h_send_cq = cq, .h_recv_cq = cq};
	struct tx_end e;
	ti_conn_info_t info = {.src_ep = w.ep,
		.pdh = w.pd,
		.recv_cqh = cq,
		.private_data = "from listen",
		.private_data_len = 12,
		.conn_request_cb = keep};
	ti_conn_handle_t l, h;

	check_case("accept() with bad parameters");
	tx_defaults(&e, &w, cq);
	TX_IS(tx->listen(w.ti, &e.attr, &info, NULL, &l), TI_SUCCESS);
	info = (ti_conn_info_t){
		.src_ep = w.any, .dst_ep = w.ep, .pdh = w.pd, .conn_request_cb = keep_answer};
	TX_IS(tx->connect(w.ti, &e.attr, &info, NULL, &h), TI_SUCCESS);
	tx_await(&asked.n, 1);
	answered.accepts = &mine;
	asked.req.private_data = data;
	asked.req.private_data_len = 197;
	TX_IS(tx->accept(&asked.req, 0, &e.comp, NULL), TI_INVALID_PARAMETER);
	asked.req.private_data_len = 0;
	e.comp.h_recv_cq = tx_cq(&w, 8); /* listen() named another one */
	TX_IS(tx->accept(&asked.req, 0, &e.comp, NULL), TI_INVALID_PARAMETER);
	e.comp.h_recv_cq = NULL;
	e.comp.h_send_cq = NULL; /* nobody named one */
	TX_IS(tx->accept(&asked.req, 0, &e.comp, NULL), TI_INVALID_PARAMETER);
	TX_IS(tx->msg_send(asked.req.conn_handle, tx_get(w.pool, 1)), TI_INVALID_OPERATION);
	e.comp.h_send_cq = cq;
	TX_IS(tx->accept(&asked.req, 0, &e.comp, NULL), TI_SUCCESS);
	tx_await(&answered.n, 1);
	TX_IS(answered.req.status, TI_SUCCESS);
	TX_IS(tx->disconnect(h, NULL, NULL), TI_SUCCESS);
	CHECK(!strcmp(reply, "from listen"));
	TX_IS(tx->disconnect(l, NULL, NULL), TI_SUCCESS);
}

int main(void)
{
	tx_begin(&w);
	cq = tx_cq(&w, 64);
	ipv6();
	host_order();
	no_mapping();
	wildcard();
	two_domains();
	queue_for_each_direction();
	accepted_badly();
	tx_end(&w);
	return check_result();
}
