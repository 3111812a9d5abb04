// SPDX-License-Identifier: BSD-3-Clause
/*
 * Messages over a connection: polled, lists, buffers, OOB data, what is not signaled, flow control,
 * the end of a service.
 */
#include <stdio.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

enum { RECEIVES = 16, ENDS = 20, CONNS = 8 };

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

/* ---- several buffers ---- */

/* a sends elements of that many buffers, p receives into as many; nothing is posted. */
static void begin_with(uint32_t sent_bufs, uint32_t recv_bufs)
{
	tx_begin(&w);
	acq = tx_cq(&w, 16);
	pcq = tx_cq(&w, 16);
	tx_defaults(&a, &w, acq);
	tx_defaults(&p, &w, pcq);
	a.attr.max_transfer_buffers = sent_bufs;
	p.attr.max_recv_buffers = recv_bufs;
	p.attr.max_recv_size = 1; /* a hint, which nothing enforces */
	a.attr.max_recv_buffers = p.attr.max_transfer_buffers = 1;
	tx_connect(&a, &p);
}

static ti_res_pool_handle_t pool_of(uint32_t count, uint32_t sizes[3])
{
	ti_res_pool_handle_t pool;

	TX_IS(tx->res_pool_create(w.ti, TI_RES_POOL_MSG, count, 3, sizes, 0, &pool), TI_SUCCESS);
	return pool;
}

/* Receives may have more buffers than what is sent. */
static void scattered(void)
{
	ti_res_pool_handle_t pool;
	ti_data_element_t *r;

	check_case("scattered");
	begin_with(1, 3);
	pool = pool_of(1, (uint32_t[]){4, 4, 4});
	TX_IS(tx->msg_recv(p.conn, tx_get(pool, 1)), TI_SUCCESS);
	TX_IS(tx->msg_send(a.conn, tx_message(&w, "0123456789a", 12)), TI_SUCCESS);
	r = tx_one(pcq, TI_SUCCESS);
	CHECK_EQ(r->recv_byte_count, 12);
	CHECK(!strcmp(r->local_data_desc[2].vaddr, "89a"));
	tx_end(&w);
}

/* A head and a tail of the pool's, and between them len bytes of the program's own. */
static void gather(ti_res_pool_handle_t pool, char *body, ti_region_key_t key, uint32_t len)
{
	ti_data_element_t *m = tx_get(pool, 1), *r;
	ti_local_data_desc_t *d = m->local_data_desc;
	const char *got;

	memcpy(d[0].vaddr, "head", 4);
	d[1] = (ti_local_data_desc_t){body, key, len};
	memcpy(d[2].vaddr, "tail", 4);
	m->msg_opt = TI_OPT_SIGNALED;
	TX_IS(tx->msg_recv(p.conn, tx_get(w.pool, 1)), TI_SUCCESS);
	TX_IS(tx->msg_send(a.conn, m), TI_SUCCESS);
	CHECK(tx_one(acq, TI_SUCCESS) == m);
	r = tx_one(pcq, TI_SUCCESS);
	got = r->local_data_desc->vaddr;
	CHECK_EQ(r->recv_byte_count, 8 + len);
	CHECK(!memcmp(got, "head", 4));
	CHECK(!memcmp(got + 4, body, len));
	CHECK(!memcmp(got + 4 + len, "tail", 4));
	tx_put(w.pool, r);
	tx_put(pool, m);
}

/* Into one buffer: of nothing, of little, of more than a request carries in itself. */
static void gathered(void)
{
	static char body[2000];
	ti_res_pool_handle_t pool;
	ti_rdma_desc_t desc;
	ti_mem_handle_t mem;

	check_case("gathered");
	for (size_t i = 0; i < sizeof body; i++)
		body[i] = i * 7;
	begin_with(3, 1);
	pool = pool_of(1, (uint32_t[]){4, 0, 4});
	TX_IS(tx->reg_virt_mem(w.ti, w.pd, body, sizeof body, TI_MEM_READ, &desc, &mem),
		TI_SUCCESS);
	gather(pool, body, desc.rkey, 0);
	gather(pool, body + 1, desc.rkey, 20);
	gather(pool, body + 3, desc.rkey, sizeof body - 3);
	tx_end(&w);
}

/* One byte more than its receive has: nothing is written behind the buffers, both ends break. */
static void too_long(void)
{
	ti_res_pool_handle_t pool;
	ti_data_element_t *r, *m;

	check_case("longer than its receive");
	begin_with(1, 3);
	pool = pool_of(2, (uint32_t[]){4, 4, 4});
	TX_IS(tx->msg_recv(p.conn, tx_get(pool, 2)), TI_SUCCESS);
	TX_IS(tx->msg_send(a.conn, tx_message(&w, "0123456789abc", 13)), TI_SUCCESS);
	m = tx_one(acq, TI_ERROR);
	r = tx_poll(pcq, 2);
	TX_IS(r->status, TI_ERROR);
	TX_IS(r->p_next_msg->status, TI_CANCELED);
	for (uint32_t i = 0; i < r->num_io_bufs; i++)
		CHECK_EQ(((char *)r->local_data_desc[i].vaddr)[4], 0);
	tx_put(pool, r);
	TX_IS(tx->msg_send(a.conn, m), TI_INVALID_OPERATION);
	m->p_next_msg = NULL;
	TX_IS(tx->msg_send(p.conn, m), TI_INVALID_OPERATION);
	tx_put(w.pool, m);
	tx_end(&w);
}

/* The wire has 4 bytes of it, however many of them the sender says are his. */
static void oob(void)
{
	static const unsigned char zeros[4];
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
		CHECK(!memcmp((char *)&r->oob_data + len, zeros, 4 - len));
		CHECK(tx_one(acq, TI_SUCCESS) == m);
	}
	tx_end(&w);
}

/* ---- what is not signaled ---- */

enum { ROUNDS = 8 };

static struct tx_count calls, came, beside;

static void sent(ti_cq_handle_t h, ti_data_element_t *list)
{
	unsigned n;

	(void)h;
	n = tx_put(w.pool, list);
	tx_add(&calls, 1);
	tx_add(&came, n);
}

static void sent_beside(ti_cq_handle_t h, ti_data_element_t *list)
{
	(void)h;
	tx_add(&beside, tx_put(w.pool, list));
}

/*
 * The callback comes with the one that is signaled, and brings both.  One thread calls back, in the
 * order of what it hears of: when it has for a connection beside, it has seen the first one.
 */
static void unsignaled(void)
{
	struct tx_end b, q;
	ti_data_element_t *m;

	check_case("not signaled");
	begin(sent);
	tx_defaults(&b, &w, tx_cq(&w, ROUNDS));
	tx_defaults(&q, &w, tx_cq(&w, ROUNDS));
	b.comp.pfn_send_cb = sent_beside;
	q.receives = ROUNDS;
	tx_connect(&b, &q);
	for (unsigned i = 1; i <= ROUNDS; i++) {
		m = tx_message(&w, "x", 1);
		m->msg_opt = 0;
		TX_IS(tx->msg_send(a.conn, m), TI_SUCCESS);
		TX_IS(tx->msg_recv(p.conn, tx_one(pcq, TI_SUCCESS)), TI_SUCCESS);
		TX_IS(tx->msg_send(b.conn, tx_message(&w, "z", 1)), TI_SUCCESS);
		tx_await(&beside, i);
		CHECK_EQ(tx_now(&calls), i - 1);
		TX_IS(tx->msg_send(a.conn, tx_message(&w, "y", 1)), TI_SUCCESS);
		TX_IS(tx->msg_recv(p.conn, tx_one(pcq, TI_SUCCESS)), TI_SUCCESS);
		tx_await(&came, 2 * i);
		CHECK_EQ(tx_now(&calls), i);
	}
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

/* ---- flow control ---- */

static void begin_flow(ti_cq_handle_t *cq, struct tx_end *active, struct tx_end *passive, bool flow)
{
	*cq = tx_cq(&w, 64);
	tx_defaults(active, &w, *cq);
	active->attr.msg_flow_control = flow;
	*passive = *active;
}

/* A message that finds no receive breaks a connection that was asked for without flow control. */
static void without_flow_control(void)
{
	check_case("without flow control");
	tx_begin(&w);
	begin_flow(&acq, &a, &p, false);
	tx_connect(&a, &p);
	TX_IS(tx->msg_send(a.conn, tx_message(&w, "x", 1)), TI_SUCCESS);
	tx_put(w.pool, tx_one(acq, TI_TIMEOUT));
	tx_end(&w);
}

/* With it, the message waits: longer than the adapter took to find that there is no receive. */
static void with_flow_control(void)
{
	struct tx_end beside[2];
	ti_data_element_t *m, *r, *list;

	check_case("with flow control");
	tx_begin(&w);
	begin_flow(&acq, &a, &p, true);
	tx_connect(&a, &p);
	begin_flow(&pcq, &beside[0], &beside[1], false);
	tx_connect(&beside[0], &beside[1]);
	m = tx_message(&w, "waits", 6);
	r = tx_get(w.pool, 1);
	TX_IS(tx->msg_send(a.conn, m), TI_SUCCESS);
	TX_IS(tx->msg_send(beside[0].conn, tx_message(&w, "x", 1)), TI_SUCCESS);
	tx_put(w.pool, tx_one(pcq, TI_TIMEOUT));
	TX_IS(tx->poll_cq(acq, &list), TI_SUCCESS);
	CHECK(!list);
	TX_IS(tx->msg_recv(p.conn, r), TI_SUCCESS);
	list = tx_poll(acq, 2);
	CHECK(list == m || list->p_next_msg == m);
	for (; list; list = list->p_next_msg)
		TX_IS(list->status, TI_SUCCESS);
	CHECK(!strcmp(r->local_data_desc->vaddr, "waits"));
	tx_end(&w);
}

/* A ti_conn_req_cb_t: nobody can send earlier. */
static void accept_and_send(ti_conn_request_t *req)
{
	struct tx_end *e = req->context;

	tx_accept(req);
	if (!e->status)
		TX_IS(tx->msg_send(e->conn, tx_message(&w, "first", 6)), TI_SUCCESS);
}

/* accept() posts its receives before the peer can send: none of these finds no receive. */
static void first_messages(void)
{
	check_case("first messages without flow control");
	tx_begin(&w);
	for (int i = 0; i < CONNS; i++) {
		begin_flow(&acq, &a, &p, false);
		a.receives = p.receives = 1;
		a.asked = p.asked = accept_and_send;
		tx_connect(&a, &p);
		for (ti_data_element_t *e = tx_poll(acq, 4); e; e = e->p_next_msg)
			TX_IS(e->status, TI_SUCCESS);
		tx_disconnect(&a);
		tx_disconnect(&p);
	}
	tx_end(&w);
}

int main(void)
{
	calls = came = beside = (struct tx_count)TX_COUNT;
	polled();
	lists();
	scattered();
	gathered();
	too_long();
	oob();
	unsignaled();
	without_flow_control();
	with_flow_control();
	first_messages();
	ended_full();
	ended_while_connecting();
	return check_result();
}
