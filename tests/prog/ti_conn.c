// SPDX-License-Identifier: BSD-3-Clause
/* Connections: accept, reject, deferral, timeouts, cancelling, private data, callbacks, ends. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

static struct tx_world w;
static ti_cq_handle_t cq;

static unsigned put_all(ti_data_element_t *list)
{
	unsigned n = 0;

	for (ti_data_element_t *e = list; e; e = e->p_next_msg)
		n++;
	tx_put(w.pool, list);
	return n;
}

/* ---- requests as they come ---- */

/* A ti_conn_req_cb_t's context: keeps what came. */
struct asked {
	struct tx_count n;
	ti_conn_request_t req;
	char data[256];
};
#define ASKED                                                                                      \
	{                                                                                          \
		TX_COUNT, {0},                                                                     \
		{                                                                                  \
			0                                                                          \
		}                                                                                  \
	}

static void keep(ti_conn_request_t *req)
{
	struct asked *a = req->context;

	a->req = *req;
	if (req->private_data_len)
		memcpy(a->data, req->private_data, req->private_data_len);
	tx_add(&a->n, 1);
}

static ti_conn_attr_t attr(uint32_t ms)
{
	ti_conn_attr_t a = {.reliable = TRUE,
		.msg_flow_control = TRUE,
		.auto_cq_rearm = TRUE,
		.connect_request_timeout = ms};

	return a;
}

static ti_conn_info_t info(ti_endpoint_handle_t src, ti_endpoint_handle_t dst, struct asked *a)
{
	ti_conn_info_t i = {.src_ep = src,
		.dst_ep = dst,
		.pdh = w.pd,
		.recv_cqh = cq,
		.conn_request_cb = keep,
		.context = a};

	return i;
}

static ti_conn_handle_t listen_for(struct asked *a, uint32_t ms)
{
	ti_conn_attr_t at = attr(ms);
	ti_conn_info_t i = info(w.ep, NULL, a);
	ti_conn_handle_t h;

	TX_IS(tx->listen(w.ti, &at, &i, NULL, &h), TI_SUCCESS);
	return h;
}

static ti_conn_handle_t call(struct asked *a, uint32_t ms, const char *data)
{
	ti_conn_attr_t at = attr(ms);
	ti_conn_info_t i = info(w.any, w.ep, a);
	ti_conn_handle_t h;

	i.private_data = (void *)data;
	i.private_data_len = data ? strlen(data) + 1 : 0;
	TX_IS(tx->connect(w.ti, &at, &i, NULL, &h), TI_SUCCESS);
	return h;
}

static void end(ti_conn_handle_t h)
{
	struct tx_count gone = TX_COUNT;

	TX_IS(tx->disconnect(h, tx_told, &gone), TI_SUCCESS);
	tx_await(&gone, 1);
}

/* ---- refusals ---- */

static void nobody_listens(void)
{
	struct asked a = ASKED;
	ti_conn_handle_t h;

	check_case("nobody listens");
	h = call(&a, 0, NULL);
	tx_await(&a.n, 1);
	TX_IS(a.req.status, TI_REJECTED);
	CHECK_EQ(a.req.cb_type, CN_REJECT);
	CHECK_EQ(a.req.caller, 0);
	CHECK(a.req.conn_handle == h);
	TX_IS(tx->disconnect(h, NULL, NULL), TI_INVALID_HANDLE);
}

static void rejected(void)
{
	struct asked a = ASKED, p = ASKED;
	ti_conn_handle_t l, h;

	check_case("rejected");
	l = listen_for(&p, 0);
	h = call(&a, 0, "please");
	tx_await(&p.n, 1);
	TX_IS(p.req.status, TI_SUCCESS);
	CHECK_EQ(p.req.cb_type, CN_REQUEST);
	CHECK_EQ(p.req.caller, 1);
	CHECK(!strcmp(p.data, "please"));
	CHECK(p.req.conn_handle != l && p.req.conn_handle != h);
	p.req.private_data = "no";
	p.req.private_data_len = 149;
	TX_IS(tx->reject(&p.req), TI_INVALID_PARAMETER);
	p.req.private_data_len = 3;
	TX_IS(tx->reject(&p.req), TI_SUCCESS);
	TX_IS(tx->reject(&p.req), TI_INVALID_HANDLE);
	tx_await(&a.n, 1);
	TX_IS(a.req.status, TI_REJECTED);
	CHECK(!strcmp(a.data, "no"));
	end(l);
}

/* The active side has the last word. */
static void rejected_after_reply(void)
{
	struct asked a = ASKED;
	struct tx_end p;
	ti_conn_attr_t at = attr(0);
	ti_conn_info_t i = info(w.ep, NULL, NULL);
	ti_data_element_t *list;
	ti_conn_handle_t l;

	check_case("rejected after the reply");
	tx_defaults(&p, &w, cq);
	p.receives = 4;
	i.conn_request_cb = tx_accept;
	i.context = &p;
	i.private_data = "reply";
	i.private_data_len = 6;
	TX_IS(tx->listen(w.ti, &at, &i, NULL, &l), TI_SUCCESS);
	call(&a, 0, NULL);
	tx_await(&a.n, 1);
	TX_IS(a.req.status, TI_SUCCESS);
	CHECK_EQ(a.req.cb_type, CN_REPLY);
	TX_IS(tx->reject(&a.req), TI_SUCCESS);
	tx_await(&p.done, 1);
	TX_IS(p.status, TI_REJECTED);
	list = tx_poll(cq, 4); /* what it posted */
	for (ti_data_element_t *e = list; e; e = e->p_next_msg)
		CHECK(e->status != TI_SUCCESS);
	put_all(list);
	end(l);
}

/* ---- time ---- */

static void await_timeout(ti_conn_handle_t h)
{
	ti_conn_profile_t prof = {.conn = h};
	uint32_t bytes = sizeof prof;

	for (int i = 0; prof.state != TI_CONN_TIMED_OUT && i < TX_WAIT_MS; i++) {
		TX_IS(tx->io_ctl(w.ti, TI_GET_CONN_PROFILE, &bytes, &prof), TI_SUCCESS);
		usleep(1000);
	}
	CHECK_EQ(prof.state, TI_CONN_TIMED_OUT);
}

/* Nobody answers the side that connects. */
static void timed_out(void)
{
	static struct asked p = ASKED; /* it may be asked after that */
	struct asked a = ASKED;
	ti_conn_handle_t l, h;

	check_case("timed out");
	l = listen_for(&p, 0);
	h = call(&a, 50, NULL);
	tx_await(&a.n, 1);
	TX_IS(a.req.status, TI_TIMEOUT);
	CHECK(a.req.conn_handle == h);
	TX_IS(tx->disconnect(h, NULL, NULL), TI_INVALID_HANDLE);
	end(l);
}

/* The side that listens answers too late. */
static void answered_late(void)
{
	struct asked a = ASKED, p = ASKED;
	ti_conn_handle_t l;
	struct tx_end e;

	check_case("answered late");
	l = listen_for(&p, 100);
	call(&a, 0, NULL);
	tx_await(&p.n, 1);
	if (!p.req.status) { /* else its time was up before the callback's turn */
		await_timeout(p.req.conn_handle);
		tx_defaults(&e, &w, NULL);
		TX_IS(tx->accept(&p.req, 0, &e.comp, tx_get(w.pool, 2)), TI_TIMEOUT);
		put_all(tx_poll(cq, 2)); /* in the queue that listen() named */
		TX_IS(tx->reject(&p.req), TI_TIMEOUT);
		TX_IS(tx->reject(&p.req), TI_INVALID_HANDLE);
	}
	tx_await(&a.n, 1);
	TX_IS(a.req.status, TI_REJECTED);
	end(l);
}

static void canceled(void)
{
	struct asked a = ASKED, p = ASKED;
	ti_conn_handle_t l, h;

	check_case("canceled");
	l = listen_for(&p, 0);
	h = call(&a, 0, NULL);
	tx_await(&p.n, 1);
	end(h);
	tx_await(&a.n, 1);
	TX_IS(a.req.status, TI_CANCELED);
	end(l);
	end(p.req.conn_handle);
}

/* ---- private data that is compared ---- */

static void compared(void)
{
	static char too_long[197];
	struct asked a = ASKED, p = ASKED;
	ti_conn_attr_t at = attr(0);
	ti_conn_info_t i = info(w.ep, NULL, &p);
	ti_conn_handle_t l;

	check_case("compared");
	i.private_data = "xxSECRET";
	i.private_data_len = 8;
	i.private_data_offset = 2;
	i.private_data_offset_len = 6;
	TX_IS(tx->listen(w.ti, &at, &i, NULL, &l), TI_SUCCESS);
	call(&a, 0, "yySECREX");
	tx_await(&a.n, 1);
	TX_IS(a.req.status, TI_REJECTED);
	CHECK_EQ(tx_now(&p.n), 0);
	call(&a, 0, "yySECRET");
	tx_await(&p.n, 1);
	TX_IS(tx->reject(&p.req), TI_SUCCESS);
	tx_await(&a.n, 2);
	end(l);
	i.private_data_offset_len = 7;
	TX_IS(tx->listen(w.ti, &at, &i, NULL, &l), TI_INVALID_PARAMETER);
	CHECK(!l);
	i.private_data = too_long; /* what accept() answers with */
	i.private_data_len = sizeof too_long;
	TX_IS(tx->listen(w.ti, &at, &i, NULL, &l), TI_INVALID_PARAMETER);
	CHECK(!l);
}

/* ---- the listener's own request ---- */

/* It is as listen() left it: each connection's callback gets another one. */
static void own_request(void)
{
	struct asked a = ASKED, p = ASKED;
	ti_conn_attr_t at = attr(0);
	ti_conn_info_t i = info(w.ep, NULL, &p);
	ti_conn_request_t own, before;
	ti_conn_handle_t l, first;

	check_case("the listener's request");
	TX_IS(tx->listen(w.ti, &at, &i, &own, &l), TI_SUCCESS);
	CHECK(own.conn_handle == l && own.context == &p);
	CHECK_EQ(own.caller, 1);
	memcpy(&before, &own, sizeof own);
	call(&a, 0, NULL);
	tx_await(&p.n, 1);
	first = p.req.conn_handle;
	call(&a, 0, NULL);
	tx_await(&p.n, 2);
	CHECK(first != l && p.req.conn_handle != l && p.req.conn_handle != first);
	CHECK(!memcmp(&own, &before, sizeof own));
	end(first);
	end(p.req.conn_handle);
	tx_await(&a.n, 2);
	end(l);
}

/* ---- callbacks, and the peer's end ---- */

struct heard {
	struct tx_count sends, recvs, errors;
	ti_status_t code;
};
static struct heard heard = {TX_COUNT, TX_COUNT, TX_COUNT, 0};

static void sent(ti_cq_handle_t h, ti_data_element_t *list)
{
	CHECK(h == cq);
	tx_add(&heard.sends, put_all(list));
}

static void received(ti_cq_handle_t h, ti_data_element_t *list)
{
	CHECK(h == cq);
	tx_add(&heard.recvs, put_all(list));
}

static void broke(ti_err_rec_t *rec)
{
	CHECK(rec->context == &heard);
	heard.code = rec->code;
	tx_add(&heard.errors, 1);
}

static void callbacks(void)
{
	struct tx_end a, p;
	ti_data_element_t *m;

	check_case("callbacks");
	tx_defaults(&a, &w, cq);
	a.comp.pfn_send_cb = sent;
	a.comp.pfn_recv_cb = received;
	a.comp.pfn_err_cb = broke;
	a.comp.p_err_context = &heard;
	p = a;
	p.comp.pfn_err_cb = NULL;
	p.done = a.done = (struct tx_count)TX_COUNT;
	p.receives = 16;
	tx_connect(&a, &p);
	for (int i = 0; i < 8; i++) {
		m = tx_message(&w, "x", 1);
		TX_IS(tx->msg_send(a.conn, m), TI_SUCCESS);
		TX_IS(tx->msg_send(a.conn, m), TI_RESOURCE_BUSY);
	}
	tx_await(&heard.sends, 8);
	tx_await(&heard.recvs, 8);
	TX_IS(tx->destroy_cq(cq), TI_INVALID_OPERATION);
	tx_disconnect(&p);
	tx_await(&heard.errors, 1); /* the peer went */
	TX_IS(heard.code, TI_CANCELED);
	CHECK_EQ(tx_now(&heard.recvs), 16); /* canceled, before disconnect()'s callback */
	m = tx_message(&w, "x", 1);
	TX_IS(tx->msg_send(a.conn, m), TI_INVALID_OPERATION);
	tx_put(w.pool, m);
	tx_disconnect(&a);
}

/* ---- more completions than the queue holds ---- */

static void overrun(void)
{
	ti_cq_handle_t small = tx_cq(&w, 4);
	struct tx_end a, p;

	check_case("overrun");
	heard.errors.n = 0;
	tx_defaults(&a, &w, cq);
	tx_defaults(&p, &w, small);
	p.comp.pfn_err_cb = broke;
	p.comp.p_err_context = &heard;
	p.receives = 8;
	tx_connect(&a, &p);
	for (int i = 0; i < 6; i++)
		TX_IS(tx->msg_send(a.conn, tx_message(&w, "x", 1)), TI_SUCCESS);
	tx_await(&heard.errors, 1);
	TX_IS(heard.code, TI_CQ_OVERRUN_ERROR);
	put_all(tx_poll(small, 8)); /* none is lost */
	tx_disconnect(&p);
	tx_disconnect(&a);
	put_all(tx_poll(cq, 6));
	TX_IS(tx->destroy_cq(small), TI_SUCCESS);
	TX_IS(tx->destroy_cq(small), TI_INVALID_PARAMETER);
}

int main(void)
{
	tx_begin(&w);
	cq = tx_cq(&w, 1024);
	nobody_listens();
	rejected();
	rejected_after_reply();
	timed_out();
	answered_late();
	canceled();
	compared();
	own_request();
	callbacks();
	overrun();
	tx_end(&w);
	return check_result();
}
