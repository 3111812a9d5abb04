// SPDX-License-Identifier: BSD-3-Clause
/* Connections: accept, reject, deferral, timeouts, cancelling, private data. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

static struct tx_world w;
static ti_cq_handle_t cq;

/* ---- requests as they come ---- */

/* A ti_conn_req_cb_t's context: keeps what came. */
struct asked {
	struct tx_count n;
	ti_conn_request_t *at, req; /* where it lay; a copy */
	char data[256];
};
#define ASKED                                                                                      \
	{                                                                                          \
		TX_COUNT, NULL, {0},                                                               \
		{                                                                                  \
			0                                                                          \
		}                                                                                  \
	}

static void keep(ti_conn_request_t *req)
{
	struct asked *a = req->context;

	CHECK_EQ(req->cb_type, req->status ? CN_REJECT : req->caller ? CN_REQUEST : CN_REPLY);
	a->at = req;
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
	h = p.req.conn_handle;
	TX_IS(tx->reject(&p.req), TI_SUCCESS);
	TX_IS(tx->reject(&p.req), TI_INVALID_HANDLE);
	CHECK(!p.req.conn_handle);
	TX_IS(tx->disconnect(h, NULL, NULL), TI_INVALID_HANDLE);
	tx_await(&a.n, 1);
	TX_IS(a.req.status, TI_REJECTED);
	CHECK(!strcmp(a.data, "no"));
	tx_close(l);
}

/* The active side has the last word. */
static void rejected_after_reply(void)
{
	struct asked a = ASKED;
	struct tx_end p;
	ti_conn_attr_t at = attr(0);
	ti_conn_info_t i = info(w.ep, NULL, NULL);
	ti_data_element_t *list;
	ti_conn_handle_t l, h;

	check_case("rejected after the reply");
	tx_defaults(&p, &w, cq);
	p.receives = 4;
	i.conn_request_cb = tx_accept;
	i.context = &p;
	i.private_data = "reply";
	i.private_data_len = 6;
	TX_IS(tx->listen(w.ti, &at, &i, NULL, &l), TI_SUCCESS);
	h = call(&a, 0, NULL);
	tx_await(&a.n, 1);
	TX_IS(a.req.status, TI_SUCCESS);
	CHECK_EQ(a.req.cb_type, CN_REPLY);
	TX_IS(tx->reject(&a.req), TI_SUCCESS);
	TX_IS(tx->disconnect(h, NULL, NULL), TI_INVALID_HANDLE);
	tx_await(&p.done, 1);
	TX_IS(p.status, TI_REJECTED);
	list = tx_poll(cq, 4); /* what it posted */
	for (ti_data_element_t *e = list; e; e = e->p_next_msg)
		CHECK(e->status != TI_SUCCESS);
	tx_put(w.pool, list);
	tx_close(l);
}

/* ---- what callbacks are given ---- */

/* connect() fills the caller's request, and the callback gets that one. */
static void callers_request(void)
{
	struct asked a = ASKED, p = ASKED;
	ti_conn_attr_t at = attr(0);
	ti_conn_info_t i = info(w.any, w.ep, &a);
	ti_conn_request_t own;
	ti_conn_handle_t l, h;

	check_case("the caller's request");
	l = listen_for(&p, 0);
	memset(&own, 0xff, sizeof own);
	TX_IS(tx->connect(w.ti, &at, &i, &own, &h), TI_SUCCESS);
	CHECK(own.conn_handle == h);
	CHECK(own.context == &a);
	TX_IS(own.status, TI_NO_STATUS);
	tx_await(&p.n, 1);
	TX_IS(tx->reject(&p.req), TI_SUCCESS);
	tx_await(&a.n, 1);
	CHECK(a.at == &own);
	CHECK(own.conn_handle == h);
	CHECK(own.context == &a);
	TX_IS(own.status, TI_REJECTED);
	CHECK_EQ(own.cb_type, CN_REJECT);
	CHECK_EQ(own.caller, 0);
	tx_close(l);
}

/* Where each side said that its own data begin, but only in data that came. */
static void offsets(void)
{
	static struct asked p = ASKED; /* it may be asked after that */
	struct asked a = ASKED;
	ti_conn_attr_t at = attr(0);
	ti_conn_info_t to = info(w.any, w.ep, &a), here = info(w.ep, NULL, &p);
	ti_conn_handle_t l, h;

	check_case("the offset of private data");
	here.private_data = "xxSECRET";
	to.private_data = "yySECRETzz";
	here.private_data_len = 8;
	to.private_data_len = 10;
	here.private_data_offset = 2;
	here.private_data_offset_len = 6;
	to.private_data_offset = 8;
	to.private_data_offset_len = 2;
	TX_IS(tx->listen(w.ti, &at, &here, NULL, &l), TI_SUCCESS);
	TX_IS(tx->connect(w.ti, &at, &to, NULL, &h), TI_SUCCESS);
	tx_await(&p.n, 1);
	CHECK_EQ(p.req.private_data_offset, 2);
	CHECK_EQ(p.req.private_data_offset_len, 6);
	CHECK(!memcmp(p.data, "yySECRETzz", 10));
	p.req.private_data = "no SECRET:no";
	p.req.private_data_len = 12;
	TX_IS(tx->reject(&p.req), TI_SUCCESS);
	tx_await(&a.n, 1);
	CHECK_EQ(a.req.private_data_offset, 8);
	CHECK_EQ(a.req.private_data_offset_len, 2);
	CHECK(!memcmp(a.data, "no SECRET:no", 12));
	TX_IS(tx->connect(w.ti, &at, &to, NULL, &h), TI_SUCCESS);
	tx_close(h);
	tx_await(&a.n, 2);
	TX_IS(a.req.status, TI_CANCELED);
	CHECK(!a.req.private_data && !a.req.private_data_len);
	CHECK_EQ(a.req.private_data_offset, 0);
	CHECK_EQ(a.req.private_data_offset_len, 0);
	tx_close(l);
}

/* ---- handles that are not connected ---- */

static void check_refused(ti_conn_handle_t h)
{
	ti_data_element_t *list = tx_get(w.pool, 2), *e = list, *msg = list->p_next_msg;
	ti_rdma_desc_t there = {0};

	e->p_next_msg = NULL;
	e->local_data_desc->byte_count = 8;
	TX_IS(ti_rdma_set_remote(e, &there), TI_SUCCESS);
	TX_IS(tx->msg_send(h, msg), TI_INVALID_OPERATION);
	TX_IS(tx->msg_recv(h, msg), TI_INVALID_OPERATION);
	TX_IS(tx->rdma_read(h, e), TI_INVALID_OPERATION);
	TX_IS(tx->rdma_write(h, e), TI_INVALID_OPERATION);
	TX_IS(tx->rdma_read_send(h, e, msg), TI_INVALID_OPERATION);
	TX_IS(tx->rdma_write_send(h, e, msg), TI_INVALID_OPERATION);
	TX_IS(tx->atomic_op(h, TI_ATOMIC_FETCH_ADD, e), TI_INVALID_OPERATION);
	tx_put(w.pool, e); /* they are the program's still */
	tx_put(w.pool, msg);
}

/* Before accept() nothing is transferred, and by a listener's handle never. */
static void not_connected(void)
{
	struct asked a = ASKED, p = ASKED;
	ti_conn_handle_t l, h;

	check_case("not connected");
	l = listen_for(&p, 0);
	h = call(&a, 0, NULL);
	tx_await(&p.n, 1);
	check_refused(l);
	check_refused(h);
	check_refused(p.req.conn_handle);
	TX_IS(tx->reject(&p.req), TI_SUCCESS);
	tx_await(&a.n, 1);
	tx_close(l);
}

/* The side that connects accepts the reply when it likes, not in the callback. */
static void kept_reply(void)
{
	struct asked a = ASKED;
	struct tx_end p;
	ti_conn_attr_t at = attr(0);
	ti_conn_info_t i = info(w.ep, NULL, NULL);
	ti_comp_info_t comp = {.h_send_cq = cq, .h_recv_cq = cq};
	ti_conn_handle_t l, h;

	check_case("a reply that is kept");
	tx_defaults(&p, &w, cq);
	p.receives = 1;
	i.conn_request_cb = tx_accept;
	i.context = &p;
	TX_IS(tx->listen(w.ti, &at, &i, NULL, &l), TI_SUCCESS);
	h = call(&a, 0, "echo");
	tx_await(&a.n, 1);
	TX_IS(a.req.status, TI_SUCCESS);
	CHECK_EQ(a.req.cb_type, CN_REPLY);
	CHECK(!a.data[0]); /* accept() was given the request as it came, and listen() nothing */
	check_refused(h);
	CHECK_EQ(tx_now(&p.done), 0); /* its accept() waits */
	TX_IS(tx->accept(&a.req, 0, &comp, NULL), TI_SUCCESS);
	CHECK(a.req.conn_handle == h);
	tx_await(&p.done, 1);
	TX_IS(p.status, TI_SUCCESS);
	TX_IS(tx->msg_send(h, tx_message(&w, "x", 1)), TI_SUCCESS);
	tx_put(w.pool, tx_poll(cq, 2));
	tx_close(h);
	tx_close(p.conn);
	tx_close(l);
}

/* ---- what accept() answers with ---- */

static enum edit { AS_IT_CAME, IN_PLACE, ELSEWHERE, SHORTER, WITHOUT, EDITS } edit;

static void edit_and_accept(ti_conn_request_t *req)
{
	CHECK(!strcmp(req->private_data, "please"));
	CHECK(req->private_data_len >= sizeof "please"); /* padded */
	if (edit == IN_PLACE)
		*(char *)req->private_data = 'P';
	else if (edit == ELSEWHERE)
		req->private_data = "elsewhere";
	if (edit == ELSEWHERE || edit == SHORTER)
		req->private_data_len = edit == SHORTER ? 2 : sizeof "elsewhere";
	if (edit == WITHOUT)
		req->private_data_len = 0;
	tx_accept(req);
}

static void answered_with(enum edit how, const char *answer)
{
	struct asked a = ASKED;
	struct tx_end p;
	ti_conn_attr_t at = attr(0);
	ti_conn_info_t i = info(w.ep, NULL, NULL);
	ti_comp_info_t comp = {.h_send_cq = cq, .h_recv_cq = cq};
	ti_conn_handle_t l, h;

	edit = how;
	tx_defaults(&p, &w, cq);
	i.conn_request_cb = edit_and_accept;
	i.context = &p;
	i.private_data = "from listen";
	i.private_data_len = sizeof "from listen";
	TX_IS(tx->listen(w.ti, &at, &i, NULL, &l), TI_SUCCESS);
	h = call(&a, 0, "please");
	tx_await(&a.n, 1);
	TX_IS(a.req.status, TI_SUCCESS);
	CHECK(!strcmp(a.data, answer));
	TX_IS(tx->accept(&a.req, 0, &comp, NULL), TI_SUCCESS);
	tx_await(&p.done, 1);
	TX_IS(p.status, TI_SUCCESS);
	tx_close(h);
	tx_close(p.conn);
	tx_close(l);
}

static void answers(void)
{
	static const char *const answer[EDITS] = {
		"from listen", "Please", "elsewhere", "pl", "from listen"};

	for (enum edit how = 0; how < EDITS; how++) {
		check_case("answered with data, edit %d", how);
		answered_with(how, answer[how]);
	}
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
	tx_close(l);
}

/* As many milliseconds as no clock counts. */
static void not_in_our_time(void)
{
	struct asked a = ASKED, p = ASKED;
	ti_conn_attr_t at = attr(1u << 27);
	ti_conn_info_t i = info(w.any, w.ep, &a);
	ti_conn_handle_t l, h;

	check_case("a timeout beyond the clock's end");
	at.connect_request_retries = 1u << 31;
	l = listen_for(&p, 0);
	TX_IS(tx->connect(w.ti, &at, &i, NULL, &h), TI_SUCCESS);
	tx_await(&p.n, 1);
	usleep(50000);
	CHECK_EQ(tx_now(&a.n), 0);
	TX_IS(tx->reject(&p.req), TI_SUCCESS);
	tx_await(&a.n, 1);
	TX_IS(a.req.status, TI_REJECTED);
	tx_close(l);
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
		tx_put(w.pool, tx_poll(cq, 2)); /* in the queue that listen() named */
		TX_IS(tx->reject(&p.req), TI_TIMEOUT);
		TX_IS(tx->reject(&p.req), TI_INVALID_HANDLE);
	}
	tx_await(&a.n, 1);
	TX_IS(a.req.status, TI_REJECTED);
	tx_close(l);
}

static void canceled(void)
{
	struct asked a = ASKED, p = ASKED;
	ti_conn_handle_t l, h;

	check_case("canceled");
	l = listen_for(&p, 0);
	h = call(&a, 0, NULL);
	tx_await(&p.n, 1);
	tx_close(h);
	tx_await(&a.n, 1);
	TX_IS(a.req.status, TI_CANCELED);
	tx_close(l);
	tx_close(p.req.conn_handle);
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
	tx_close(l);
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
	tx_close(first);
	tx_close(p.req.conn_handle);
	tx_await(&a.n, 2);
	tx_close(l);
}

int main(void)
{
	tx_begin(&w);
	cq = tx_cq(&w, 1024);
	nobody_listens();
	rejected();
	rejected_after_reply();
	callers_request();
	offsets();
	not_connected();
	kept_reply();
	answers();
	timed_out();
	not_in_our_time();
	answered_late();
	canceled();
	compared();
	own_request();
	tx_end(&w);
	return check_result();
}
