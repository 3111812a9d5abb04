// SPDX-License-Identifier: BSD-3-Clause
/* Messages over a connection: polled, OOB data, lists, what is not signaled, the end of a service.
 */
#include <stdio.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

enum { RECEIVES = 16, ENDS = 20 };

/* ---- polled ---- */

static void one_message(struct tx_end *from, ti_cq_handle_t cq)
{
	ti_data_element_t *m, *r;

	m = tx_message(from->w, "hello", 6);
	TX_IS(tx->msg_send(from->conn, m), TI_SUCCESS);
	/* both ends have the same queue here */
	r = tx_poll(cq, 2);
	for (; r; r = r->p_next_msg) {
		TX_IS(r->status, TI_SUCCESS);
		if (r == m)
			continue;
		CHECK_EQ(r->recv_byte_count, 6);
		CHECK_EQ(r->oob_data_len, 0);
		CHECK(!strcmp(r->local_data_desc->vaddr, "hello"));
	}
}

static void polled(void)
{
	struct tx_world w;
	struct tx_end a, p;
	ti_cq_handle_t cq;

	check_case("polled");
	tx_begin(&w);
	cq = tx_cq(&w, 1024);
	tx_defaults(&a, &w, cq);
	tx_defaults(&p, &w, cq);
	a.receives = p.receives = RECEIVES;
	tx_connect(&a, &p);
	one_message(&a, cq);
	one_message(&p, cq);
	tx_disconnect(&a);
	tx_end(&w);
}

/* ---- lists ---- */

static struct tx_world w;
static struct tx_end a, p;
static ti_cq_handle_t acq, pcq;

static void begin(ti_xfer_cb_t sent)
{
	tx_begin(&w);
	acq = tx_cq(&w, 1024);
	pcq = tx_cq(&w, 1024);
	tx_defaults(&a, &w, acq);
	tx_defaults(&p, &w, pcq);
	a.comp.pfn_send_cb = sent;
	p.receives = RECEIVES;
	tx_connect(&a, &p);
}

/* n messages with the numbers from first on. */
static ti_data_element_t *numbered(char first, int n)
{
	ti_data_element_t *list = NULL, *m;

	while (n-- > 0) {
		char number = first + n;

		m = tx_message(&w, &number, 1);
		m->p_next_msg = list;
		list = m;
	}
	return list;
}

static void check_numbers(char first, int n)
{
	for (ti_data_element_t *r = tx_poll(pcq, n); r; r = r->p_next_msg) {
		TX_IS(r->status, TI_SUCCESS);
		CHECK_EQ(*(char *)r->local_data_desc->vaddr, first++);
	}
}

static void lists(void)
{
	ti_data_element_t *list, *last;

	check_case("lists");
	begin(NULL);
	list = numbered(1, 4);
	TX_IS(tx->msg_send(a.conn, list), TI_SUCCESS);
	check_numbers(1, 4);
	CHECK(tx_poll(acq, 4) == list);
	for (last = list; last->p_next_msg;)
		last = last->p_next_msg;
	last->oob_data_len = 5; /* then none of them is sent */
	TX_IS(tx->msg_send(a.conn, list), TI_INVALID_PARAMETER);
	tx_put(w.pool, list);
	TX_IS(tx->msg_send(a.conn, numbered(9, 1)), TI_SUCCESS);
	check_numbers(9, 1);
	tx_end(&w);
}

/* Receives may have more buffers than what is sent. */
static void scattered(void)
{
	uint32_t sizes[3] = {4, 4, 4};
	ti_res_pool_handle_t pool;
	struct tx_end from, to;
	ti_data_element_t *r;

	check_case("scattered");
	tx_begin(&w);
	acq = tx_cq(&w, 16);
	pcq = tx_cq(&w, 16);
	tx_defaults(&from, &w, acq);
	tx_defaults(&to, &w, pcq);
	to.attr.max_transfer_buffers = 1;
	to.attr.max_recv_buffers = 3;
	tx_connect(&from, &to);
	TX_IS(tx->res_pool_create(w.ti, TI_RES_POOL_MSG, 1, 3, sizes, 0, &pool), TI_SUCCESS);
	TX_IS(tx->msg_recv(to.conn, tx_get(pool, 1)), TI_SUCCESS);
	TX_IS(tx->msg_send(from.conn, tx_message(&w, "0123456789a", 12)), TI_SUCCESS);
	r = tx_one(pcq, TI_SUCCESS);
	CHECK_EQ(r->recv_byte_count, 12);
	CHECK(!strcmp(r->local_data_desc[2].vaddr, "89a"));
	tx_end(&w);
}

/* The wire has 4 bytes of it, however many of them the sender says are his. */
static void oob(void)
{
	ti_data_element_t *m, *r;

	check_case("OOB data");
	begin(NULL);
	for (uint32_t len = 1; len <= 4; len++) {
		m = tx_message(&w, "x", 1);
		m->oob_data = 0x0a0b0c0d;
		m->oob_data_len = len;
		TX_IS(tx->msg_send(a.conn, m), TI_SUCCESS);
		r = tx_one(pcq, TI_SUCCESS);
		CHECK_EQ(r->oob_data_len, 4);
		CHECK(!memcmp(&r->oob_data, &m->oob_data, len));
		CHECK(tx_one(acq, TI_SUCCESS) == m);
	}
	tx_end(&w);
}

/* ---- what is not signaled ---- */

static struct tx_count calls, came;

static void sent(ti_cq_handle_t h, ti_data_element_t *list)
{
	unsigned n = 0;

	(void)h;
	for (; list; list = list->p_next_msg)
		n++;
	tx_add(&calls, 1);
	tx_add(&came, n);
}

static void unsignaled(void)
{
	ti_data_element_t *m;

	check_case("not signaled");
	begin(sent);
	m = tx_message(&w, "x", 1);
	m->msg_opt = 0;
	TX_IS(tx->msg_send(a.conn, m), TI_SUCCESS);
	(void)tx_one(pcq, TI_SUCCESS);
	TX_IS(tx->msg_send(a.conn, tx_message(&w, "y", 1)), TI_SUCCESS);
	tx_await(&came, 2);
	CHECK_EQ(tx_now(&calls), 1);
	tx_end(&w);
}

/* ---- the end ---- */

/* What comes back then is of a pool that is younger than the queue, and nobody polls for it. */
static void ended_full(void)
{
	uint32_t size = 64;
	ti_res_pool_handle_t pool;

	check_case("the end of a service with a full queue");
	begin(NULL);
	TX_IS(tx->res_pool_create(w.ti, TI_RES_POOL_MSG, 8, 1, &size, 0, &pool), TI_SUCCESS);
	TX_IS(tx->msg_recv(p.conn, tx_get(pool, 8)), TI_SUCCESS);
	tx_end(&w);
}

static void ignore(ti_conn_request_t *req)
{
	(void)req;
}

static void *connects(void *p_n)
{
	ti_conn_attr_t attr = {.reliable = TRUE};
	ti_conn_info_t info = {
		.src_ep = w.any, .dst_ep = w.ep, .pdh = w.pd, .conn_request_cb = ignore};
	ti_conn_handle_t h;

	while (tx->connect(w.ti, &attr, &info, NULL, &h) == TI_SUCCESS)
		tx_add(p_n, 1);
	return NULL;
}

static void ended_while_connecting(void)
{
	struct tx_count n;
	pthread_t thread;

	check_case("the end of a service while connections are made");
	for (int i = 0; i < ENDS; i++) {
		n = (struct tx_count)TX_COUNT;
		tx_begin(&w);
		pthread_create(&thread, NULL, connects, &n);
		tx_await(&n, 1 + i % 4);
		tx_end(&w);
		pthread_join(thread, NULL);
	}
}

/* A message that finds no receive breaks a connection that was asked for without flow control. */
static void without_flow_control(void)
{
	check_case("without flow control");
	tx_begin(&w);
	acq = tx_cq(&w, 64);
	tx_defaults(&a, &w, acq);
	a.attr.msg_flow_control = FALSE;
	p = a;
	tx_connect(&a, &p);
	TX_IS(tx->msg_send(a.conn, tx_message(&w, "x", 1)), TI_SUCCESS);
	tx_put(w.pool, tx_one(acq, TI_TIMEOUT));
	tx_end(&w);
}

int main(void)
{
	calls = came = (struct tx_count)TX_COUNT;
	polled();
	lists();
	scattered();
	oob();
	unsignaled();
	without_flow_control();
	ended_full();
	ended_while_connecting();
	return check_result();
}
