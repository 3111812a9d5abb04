// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/ti_ends.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/lib/check.h"

ti_ops_t *tx;

bool tx_is(ti_status_t got, ti_status_t want, const char *file, int line, const char *what)
{
	char text[512];

	if (got == want)
		return check_that(true, file, line, what);
	snprintf(text, sizeof text, "%s is \"%s\", not \"%s\"", what, ti_status_2_str(got),
		ti_status_2_str(want));
	return check_that(false, file, line, text);
}

static void must(ti_status_t st, const char *what)
{
	if (st)
		die("%s: %s", what, ti_status_2_str(st));
}

/* ---- the world ---- */

ti_endpoint_handle_t tx_endpoint(ti_handle_t ti, const char *ipv4, ti_port_t port)
{
	ti_endpoint_handle_t ep;
	ti_inet_addr_t a;

	SET_IPV4_ADDR(a, inet_addr(ipv4));
	must(tx->create_endpoint(ti, &a, port, &ep), "create_endpoint");
	return ep;
}

ti_cq_handle_t tx_cq(const struct tx_world *w, uint32_t entries)
{
	ti_cq_handle_t cq;

	must(tx->create_cq(w->ti, w->pd, entries, &cq), "create_cq");
	return cq;
}

void tx_begin(struct tx_world *w)
{
	static ti_port_t next = 7600;

	tx_begin_at(w, "127.0.0.1", next++);
}

void tx_begin_at(struct tx_world *w, const char *ipv4, ti_port_t port)
{
	uint32_t size = TX_SIZE;

	tx = ti_ops_get();
	memset(w, 0, sizeof *w);
	w->port = port;
	must(tx->create_ti(&w->ti), "create_ti");
	w->ep = tx_endpoint(w->ti, ipv4, w->port);
	w->any = tx_endpoint(w->ti, ipv4, 0);
	must(tx->create_pd(w->ti, w->ep, &w->pd), "create_pd");
	must(tx->res_pool_create(w->ti, TI_RES_POOL_MSG, TX_POOL, 1, &size, 0, &w->pool),
		"res_pool_create");
}

void tx_end(struct tx_world *w)
{
	struct tx_count gone = TX_COUNT;

	TX_IS(tx->destroy_ti(w->ti, tx_told, &gone), TI_SUCCESS);
	tx_await(&gone, 1);
	TX_IS(tx->debug_svc(w->ti, TI_DBG_STD), TI_INVALID_HANDLE);
}

/* ---- waiting ---- */

void tx_add(struct tx_count *c, unsigned n)
{
	pthread_mutex_lock(&c->lock);
	c->n += n;
	pthread_cond_broadcast(&c->more);
	pthread_mutex_unlock(&c->lock);
}

void tx_told(void *count)
{
	tx_add(count, 1);
}

void tx_await(struct tx_count *c, unsigned n)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += TX_WAIT_MS / 1000;
	pthread_mutex_lock(&c->lock);
	while (c->n < n)
		if (pthread_cond_timedwait(&c->more, &c->lock, &until))
			die("%u of %u came", c->n, n);
	pthread_mutex_unlock(&c->lock);
}

unsigned tx_now(struct tx_count *c)
{
	unsigned n;

	pthread_mutex_lock(&c->lock);
	n = c->n;
	pthread_mutex_unlock(&c->lock);
	return n;
}

static struct tx_count held = TX_COUNT, let_go = TX_COUNT;

static void no_request(ti_conn_request_t *req)
{
	(void)req;
	die("a request came");
}

static void hold(void *turn)
{
	tx_add(&held, 1);
	tx_await(&let_go, (unsigned)(uintptr_t)turn);
}

void tx_hold(const struct tx_world *w)
{
	ti_conn_attr_t attr = {.reliable = TRUE};
	ti_conn_info_t info = {.src_ep = w->any, .pdh = w->pd, .conn_request_cb = no_request};
	unsigned turn = tx_now(&held) + 1;
	ti_conn_handle_t h;

	must(tx->listen(w->ti, &attr, &info, NULL, &h), "listen");
	must(tx->disconnect(h, hold, (void *)(uintptr_t)turn), "disconnect");
	tx_await(&held, turn);
}

void tx_let_go(void)
{
	tx_add(&let_go, 1);
}

/* ---- connections ---- */

void tx_defaults(struct tx_end *e, struct tx_world *w, ti_cq_handle_t cq)
{
	memset(e, 0, sizeof *e);
	e->w = w;
	e->attr.reliable = e->attr.msg_flow_control = e->attr.auto_cq_rearm = TRUE;
	e->comp.h_send_cq = e->comp.h_recv_cq = cq;
	e->max_rdma = UINT32_MAX;
	e->done = (struct tx_count)TX_COUNT;
}

void tx_accept(ti_conn_request_t *req)
{
	struct tx_end *e = req->context;

	e->status = req->status;
	if (!e->status)
		e->status = tx->accept(req, e->max_rdma, &e->comp,
			e->receives ? tx_get(e->w->pool, e->receives) : NULL);
	if (!e->status)
		e->conn = req->conn_handle;
	tx_add(&e->done, 1);
}

static ti_conn_info_t info_for(struct tx_end *e)
{
	ti_conn_info_t info = {
		.src_ep = e->w->any,
		.pdh = e->w->pd,
		.conn_request_cb = e->asked ? e->asked : tx_accept,
		.context = e,
	};

	return info;
}

void tx_connect(struct tx_end *active, struct tx_end *passive)
{
	ti_conn_info_t a = info_for(active), p = info_for(passive);
	ti_conn_handle_t listener, conn;

	a.dst_ep = passive->w->ep;
	if (passive->w != active->w) /* another service does not know that endpoint */
		a.dst_ep = tx_endpoint(active->w->ti, "127.0.0.1", passive->w->port);
	p.src_ep = passive->w->ep;
	must(tx->listen(passive->w->ti, &passive->attr, &p, NULL, &listener), "listen");
	must(tx->connect(active->w->ti, &active->attr, &a, NULL, &conn), "connect");
	tx_await(&active->done, 1);
	tx_await(&passive->done, 1);
	must(active->status, "the active side");
	must(passive->status, "the passive side");
	CHECK(active->conn == conn);
	CHECK(passive->conn != listener);
	passive->done.n = 0;
	must(tx->disconnect(listener, tx_told, &passive->done), "disconnect");
	tx_await(&passive->done, 1);
}

void tx_keep(ti_conn_request_t *req)
{
	struct tx_kept *k = req->context;

	k->req = *req;
	tx_add(&k->n, 1);
}

void tx_close(ti_conn_handle_t h)
{
	struct tx_count gone = TX_COUNT;

	TX_IS(tx->disconnect(h, tx_told, &gone), TI_SUCCESS);
	tx_await(&gone, 1);
}

void tx_disconnect(struct tx_end *e)
{
	tx_close(e->conn);
	TX_IS(tx->disconnect(e->conn, NULL, NULL), TI_INVALID_HANDLE);
}

/* ---- elements ---- */

ti_data_element_t *tx_get(ti_res_pool_handle_t pool, uint32_t n)
{
	ti_pool_response_t resp;

	must(tx->res_pool_get(pool, n, FALSE, NULL, NULL, NULL, &resp), "res_pool_get");
	return resp.p_element_list;
}

ti_data_element_t *tx_message(const struct tx_world *w, const void *data, uint32_t len)
{
	ti_data_element_t *e = tx_get(w->pool, 1);

	memcpy(e->local_data_desc->vaddr, data, len);
	e->local_data_desc->byte_count = len;
	e->msg_opt = TI_OPT_SIGNALED | TI_OPT_SOLICITED;
	return e;
}

ti_data_element_t *tx_poll(ti_cq_handle_t cq, unsigned n)
{
	ti_data_element_t *all = NULL, **end = &all;
	double until = now_ms() + TX_WAIT_MS;
	unsigned came = 0;

	while (came < n) {
		must(tx->poll_cq(cq, end), "poll_cq");
		for (; *end; came++)
			end = &(*end)->p_next_msg;
		if (now_ms() > until)
			die("%u of %u elements came", came, n);
	}
	CHECK_EQ(came, n);
	return all;
}

ti_data_element_t *tx_one(ti_cq_handle_t cq, ti_status_t status)
{
	ti_data_element_t *e = tx_poll(cq, 1);

	TX_IS(e->status, status);
	return e;
}

unsigned tx_put(ti_res_pool_handle_t pool, ti_data_element_t *list)
{
	unsigned n = 0;

	for (const ti_data_element_t *e = list; e; e = e->p_next_msg)
		n++;
	TX_IS(tx->res_pool_put(pool, list), TI_SUCCESS);
	return n;
}
