// SPDX-License-Identifier: BSD-3-Clause
/* RDMA, alone and in lists, bundles with messages, limits, atomics. */
#include <sched.h>
#include <stdint.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_areas.h"

static struct tx_rdma x;

/* ---- RDMA and bundles ---- */

static void single(void)
{
	ti_data_element_t *e;

	check_case("by ti_rdma_set_remote()");
	tx_fill(x.local.at, TX_AREA, 1);
	e = tx_towards(&x, 0, TX_AREA, 0);
	TX_IS(tx->rdma_write(x.a.conn, e), TI_SUCCESS);
	CHECK(tx_one(x.acq, TI_SUCCESS) == e);
	CHECK(!memcmp(x.local.at, x.remote.at, TX_AREA));
	tx_put(x.users, e);
	tx_fill(x.remote.at, TX_AREA, 2);
	e = tx_towards(&x, 10, 1000, 20);
	TX_IS(tx->rdma_read(x.a.conn, e), TI_SUCCESS);
	CHECK(tx_one(x.acq, TI_SUCCESS) == e);
	CHECK(!memcmp(x.local.at + 10, x.remote.at + 20, 1000));
	tx_put(x.users, e);
}

static void pairs(void)
{
	ti_data_element_t *r = tx_get(x.remotes, 1), *e = tx_local(&x, 0, 100), *list;

	check_case("by pairs");
	tx_fill(x.local.at, TX_AREA, 3);
	r->num_io_bufs = 1;
	r->rdma_data_desc[0] = x.remote.desc;
	r->p_next_msg = e;
	TX_IS(tx->rdma_write(x.a.conn, r), TI_SUCCESS);
	list = tx_poll(x.acq, 2);
	CHECK(list == r && r->p_next_msg == e);
	TX_IS(r->status, TI_SUCCESS);
	TX_IS(e->status, TI_SUCCESS);
	CHECK(!memcmp(x.local.at, x.remote.at, 100));
	/* each buffer to an address of its own */
	e->p_next_msg = NULL;
	e->num_io_bufs = r->num_io_bufs = 2;
	e->local_data_desc[1] = (ti_local_data_desc_t){x.local.at + 500, x.local.desc.rkey, 50};
	r->rdma_data_desc[0].vaddr = x.remote.desc.vaddr + 2000;
	r->rdma_data_desc[1] = (ti_rdma_desc_t){x.remote.desc.vaddr + 4000, x.remote.desc.rkey};
	TX_IS(tx->rdma_write(x.a.conn, r), TI_SUCCESS);
	list = tx_poll(x.acq, 2);
	CHECK(!memcmp(x.local.at, x.remote.at + 2000, 100));
	CHECK(!memcmp(x.local.at + 500, x.remote.at + 4000, 50));
	/* an address without buffers, and buffers without address */
	e->num_io_bufs = 1;
	TX_IS(tx->rdma_write(x.a.conn, r), TI_INVALID_PARAMETER);
	e->num_io_bufs = 2;
	r->p_next_msg = NULL;
	TX_IS(tx->rdma_write(x.a.conn, r), TI_INVALID_PARAMETER);
	TX_IS(tx->rdma_write(x.a.conn, e), TI_INVALID_PARAMETER);
	TX_IS(tx->rdma_write(x.a.conn, NULL), TI_INVALID_PARAMETER);
	tx_put(x.remotes, r);
	tx_put(x.users, e);
}

static void pieces(void)
{
	uint32_t piece = 4096 * 3 + 5, bytes = sizeof piece;
	ti_data_element_t *e = tx_towards(&x, 0, TX_AREA, 0), *imm;

	check_case("in pieces");
	TX_IS(tx->io_ctl(x.w.ti, TI_SET_RDMA_PIECE, &bytes, &piece), TI_SUCCESS);
	tx_fill(x.local.at, TX_AREA, 4);
	e->num_io_bufs = 2;
	e->local_data_desc[0].byte_count = 300001;
	e->local_data_desc[1] =
		(ti_local_data_desc_t){x.local.at + 300001, x.local.desc.rkey, TX_AREA - 300001};
	TX_IS(tx->rdma_write(x.a.conn, e), TI_SUCCESS);
	CHECK(tx_one(x.acq, TI_SUCCESS) == e);
	CHECK(!memcmp(x.local.at, x.remote.at, TX_AREA));
	tx_fill(x.remote.at, TX_AREA, 5);
	TX_IS(tx->rdma_read(x.a.conn, e), TI_SUCCESS);
	CHECK(tx_one(x.acq, TI_SUCCESS) == e);
	CHECK(!memcmp(x.local.at, x.remote.at, TX_AREA));
	e->msg_opt |= TI_OPT_IMMEDIATE;
	e->oob_data = 0x01020304;
	TX_IS(tx->rdma_write(x.a.conn, e), TI_SUCCESS);
	CHECK(tx_one(x.acq, TI_SUCCESS) == e);
	imm = tx_one(x.pcq, TI_SUCCESS); /* one, with the last piece */
	CHECK_EQ(imm->oob_data_len, 4);
	CHECK_EQ(imm->oob_data, 0x01020304);
	tx_put(x.w.pool, imm);
	tx_put(x.users, e);
	piece = 0;
	TX_IS(tx->io_ctl(x.w.ti, TI_SET_RDMA_PIECE, &bytes, &piece), TI_SUCCESS);
}

/* The pieces of a request are of one size, whatever is set while they wait for the send queue. */
static void pieces_that_wait(void)
{
	ti_conn_attr_t attr = {.reliable = TRUE, .auto_cq_rearm = TRUE, .max_transfer_depth = 1};
	uint32_t piece = TX_AREA / 4, on = 1, bytes = sizeof piece;
	ti_data_element_t *e;

	tx_rdma_begin(&x, &attr);
	check_case("pieces that wait");
	tx_fill(x.local.at, TX_AREA, 10);
	e = tx_towards(&x, 0, TX_AREA, 0);
	TX_IS(tx->io_ctl(x.w.ti, TI_SET_PENDING, &bytes, &on), TI_SUCCESS);
	TX_IS(tx->io_ctl(x.w.ti, TI_SET_RDMA_PIECE, &bytes, &piece), TI_SUCCESS);
	TX_IS(tx->rdma_write(x.a.conn, e), TI_PENDING);
	piece = 4096;
	TX_IS(tx->io_ctl(x.w.ti, TI_SET_RDMA_PIECE, &bytes, &piece), TI_SUCCESS);
	CHECK(tx_one(x.acq, TI_SUCCESS) == e);
	CHECK(!memcmp(x.local.at, x.remote.at, TX_AREA));
	tx_rdma_end(&x);
}

static void bundles(void)
{
	ti_data_element_t *e, *m, *got;

	check_case("bundles");
	tx_fill(x.local.at, TX_AREA, 6);
	e = tx_towards(&x, 0, 100000, 0);
	m = tx_message(&x.w, "written", 8);
	TX_IS(tx->rdma_write_send(x.a.conn, e, m), TI_SUCCESS);
	got = tx_one(x.pcq, TI_SUCCESS);
	CHECK(!strcmp(got->local_data_desc->vaddr, "written"));
	CHECK(!memcmp(x.local.at, x.remote.at, 100000));
	CHECK(tx_poll(x.acq, 2) == e);
	tx_put(x.w.pool, got);
	e->p_next_msg = NULL;
	tx_fill(x.remote.at, TX_AREA, 7);
	TX_IS(tx->rdma_read_send(x.a.conn, e, m), TI_SUCCESS);
	got = tx_one(x.pcq, TI_SUCCESS);
	CHECK(!memcmp(x.local.at, x.remote.at, 100000));
	CHECK(tx_poll(x.acq, 2) == e);
	e->p_next_msg = NULL;
	tx_put(x.w.pool, got);
	TX_IS(tx->rdma_read_send(x.a.conn, e, NULL), TI_INVALID_PARAMETER);
	TX_IS(tx->rdma_read_send(x.a.conn, NULL, m), TI_INVALID_PARAMETER);
	tx_put(x.users, e);
	tx_put(x.w.pool, m);
}

/* ---- lists ---- */

/* Pairs and single elements in one call: done in order, and they come back in order. */
static void lists(void)
{
	ti_data_element_t *r = tx_get(x.remotes, 1), *e = tx_local(&x, 0, 100);
	ti_data_element_t *second = tx_towards(&x, 100, 50, 50), *third = tx_towards(&x, 9, 1, 300);

	check_case("lists");
	tx_fill(x.local.at, TX_AREA, 12);
	memset(x.remote.at, 0, TX_AREA);
	r->num_io_bufs = 1;
	r->rdma_data_desc[0] = x.remote.desc;
	r->p_next_msg = e;
	e->p_next_msg = second;
	second->p_next_msg = third;
	TX_IS(tx->rdma_write(x.a.conn, r), TI_SUCCESS);
	CHECK(tx_poll(x.acq, 4) == r);
	CHECK(r->p_next_msg == e && e->p_next_msg == second && second->p_next_msg == third);
	CHECK(!memcmp(x.remote.at, x.local.at, 50));
	CHECK(!memcmp(x.remote.at + 50, x.local.at + 100, 50)); /* the second one was later */
	CHECK_EQ(x.remote.at[300], x.local.at[9]);
	tx_fill(x.remote.at, TX_AREA, 13);
	TX_IS(tx->rdma_read(x.a.conn, r), TI_SUCCESS);
	CHECK(tx_poll(x.acq, 4) == r);
	CHECK(!memcmp(x.local.at + 10, x.remote.at + 10, 90));
	CHECK(!memcmp(x.local.at + 100, x.remote.at + 50, 50));
	CHECK_EQ(x.local.at[9], x.remote.at[300]);
	r->p_next_msg = NULL;
	tx_put(x.remotes, r);
	tx_put(x.users, e);
}

/* A bundle with several requests; one whose last one is bad is not begun. */
static void long_bundles(void)
{
	ti_data_element_t *first = tx_towards(&x, 0, 100, 0), *bad = tx_local(&x, 0, 10);
	ti_data_element_t *m = tx_message(&x.w, "all", 4), *got;

	check_case("bundles of several");
	tx_fill(x.local.at, TX_AREA, 14);
	memset(x.remote.at, 0, TX_AREA);
	first->p_next_msg = tx_towards(&x, 100, 100, 100);
	first->p_next_msg->p_next_msg = bad; /* without an address */
	TX_IS(tx->rdma_write_send(x.a.conn, first, m), TI_INVALID_PARAMETER);
	TX_IS(tx->rdma_read_send(x.a.conn, first, m), TI_INVALID_PARAMETER);
	first->p_next_msg->p_next_msg = NULL;
	tx_put(x.users, bad);
	TX_IS(tx->rdma_write_send(x.a.conn, first, m), TI_SUCCESS); /* all were the program's */
	got = tx_one(x.pcq, TI_SUCCESS);
	CHECK(!strcmp(got->local_data_desc->vaddr, "all"));
	CHECK(!memcmp(x.remote.at, x.local.at, 200));
	tx_put(x.w.pool, got);
	CHECK(tx_poll(x.acq, 3) == first);
	CHECK(first->p_next_msg->p_next_msg == m);
	first->p_next_msg->p_next_msg = NULL;
	tx_put(x.users, first);
	tx_put(x.w.pool, m);
}

/* The last request of a bundle fails at the peer: those before it are done, the message is not. */
static void bad_bundle(void)
{
	ti_rdma_desc_t wrong;
	ti_data_element_t *first, *m;

	tx_rdma_begin(&x, NULL);
	check_case("a bundle that fails at its end");
	wrong = x.remote.desc;
	wrong.vaddr += TX_AREA;
	tx_fill(x.local.at, TX_AREA, 15);
	first = tx_towards(&x, 0, 100, 0);
	first->p_next_msg = tx_towards_desc(&x, 0, 100, wrong);
	m = tx_message(&x.w, "never", 6);
	TX_IS(tx->rdma_write_send(x.a.conn, first, m), TI_SUCCESS);
	CHECK(tx_poll(x.acq, 3) == first);
	TX_IS(first->status, TI_SUCCESS);
	TX_IS(first->p_next_msg->status, TI_INVALID_PERMISSION);
	TX_IS(m->status, TI_CANCELED);
	CHECK(!memcmp(x.remote.at, x.local.at, 100));
	for (m = tx_poll(x.pcq, TX_RECEIVES); m; m = m->p_next_msg)
		TX_IS(m->status, TI_CANCELED);
	tx_rdma_end(&x);
}

/* A fenced message has what the read before it brings, though that waits in pieces for its turn. */
static void fenced(void)
{
	ti_conn_attr_t attr = {.reliable = TRUE, .auto_cq_rearm = TRUE, .max_transfer_depth = 2};
	uint32_t piece = 4096, bytes = sizeof piece;
	ti_data_element_t *e, *m, *got;

	tx_rdma_begin(&x, &attr);
	check_case("a fence");
	TX_IS(tx->io_ctl(x.w.ti, TI_SET_RDMA_PIECE, &bytes, &piece), TI_SUCCESS);
	tx_fill(x.remote.at, TX_AREA, 16);
	e = tx_towards(&x, 0, TX_AREA, 0);
	m = tx_local(&x, TX_AREA - 1000, 1000);
	m->msg_opt |= TI_OPT_FENCE;
	TX_IS(tx->rdma_read(x.a.conn, e), TI_SUCCESS);
	TX_IS(tx->msg_send(x.a.conn, m), TI_SUCCESS);
	CHECK(tx_poll(x.acq, 2) == e);
	got = tx_one(x.pcq, TI_SUCCESS);
	CHECK_EQ(got->recv_byte_count, 1000);
	CHECK(!memcmp(got->local_data_desc->vaddr, x.remote.at + TX_AREA - 1000, 1000));
	tx_rdma_end(&x);
}

/* ---- limits ---- */

/* Connects once more, with limits of both: of attributes and of accept(). */
static struct tx_end limited(uint32_t max_rdma_size, uint32_t at_accept)
{
	struct tx_end b = x.a, q = x.p;

	b.attr.max_rdma_size = max_rdma_size;
	b.attr.max_transfer_size = 100;
	b.max_rdma = at_accept;
	b.done = q.done = (struct tx_count)TX_COUNT;
	tx_connect(&b, &q);
	return b;
}

static void write_of(const struct tx_end *b, uint32_t len, ti_status_t want)
{
	ti_data_element_t *e = tx_towards(&x, 0, len, 0);

	TX_IS(tx->rdma_write(b->conn, e), want);
	if (!want)
		CHECK(tx_one(x.acq, TI_SUCCESS) == e);
	tx_put(x.users, e);
}

/* Where attributes are 0 the library chooses, and tells. */
static void defaults(const struct tx_end *b)
{
	ti_conn_profile_t prof = {.conn = b->conn};
	uint32_t bytes = sizeof prof;

	TX_IS(tx->io_ctl(x.w.ti, TI_GET_CONN_PROFILE, &bytes, &prof), TI_SUCCESS);
	CHECK_EQ(prof.max_transfer_depth, 128);
	CHECK_EQ(prof.max_transfer_buffers, 4);
	CHECK_EQ(prof.max_recv_depth, 128);
	CHECK_EQ(prof.max_recv_buffers, 4);
	CHECK_EQ(prof.max_rdma_depth, 16);
	CHECK_EQ(prof.max_rdma_size, UINT32_MAX);
	CHECK(prof.max_recv_size >= TX_AREA);
}

/* The smaller one counts.  0 in the attributes is no limit, 0 in accept() no RDMA. */
static void limits(void)
{
	struct tx_end attr = limited(1000, UINT32_MAX), both = limited(1000, 500);
	struct tx_end none = limited(0, UINT32_MAX), no_rdma = limited(1000, 0);
	ti_data_element_t *m = tx_message(&x.w, "", 0);

	check_case("limits");
	defaults(&none);
	write_of(&attr, 1000, TI_SUCCESS);
	write_of(&attr, 1001, TI_INVALID_PARAMETER);
	write_of(&both, 500, TI_SUCCESS);
	write_of(&both, 501, TI_INVALID_PARAMETER);
	write_of(&none, TX_AREA, TI_SUCCESS);
	write_of(&no_rdma, 1, TI_INVALID_OPERATION);
	m->local_data_desc->byte_count = 101;
	TX_IS(tx->msg_send(attr.conn, m), TI_INVALID_PARAMETER);
	m->local_data_desc->byte_count = 100;
	TX_IS(tx->msg_send(attr.conn, m), TI_SUCCESS);
	CHECK(tx_one(x.acq, TI_SUCCESS) == m);
	tx_put(x.w.pool, tx_one(x.pcq, TI_SUCCESS));
	tx_put(x.w.pool, m);
}

/* ---- atomics ---- */

static uint64_t atomic8(ti_atomic_op_t op, uint64_t first, uint64_t second, uint32_t there)
{
	ti_data_element_t *e = tx_towards(&x, 64, 8, there);
	uint64_t *operand = (uint64_t *)(x.local.at + 64), old;

	operand[0] = first;
	operand[1] = second;
	TX_IS(tx->atomic_op(x.a.conn, op, e), TI_SUCCESS);
	tx_put(x.users, tx_one(x.acq, TI_SUCCESS));
	old = operand[0];
	return old;
}

static uint32_t atomic4(ti_atomic_op_t op, uint32_t first, uint32_t second, uint32_t there)
{
	ti_data_element_t *e = tx_towards(&x, 64, 4, there);
	uint32_t *operand = (uint32_t *)(x.local.at + 64);

	operand[0] = first;
	operand[1] = second;
	TX_IS(tx->atomic_op(x.a.conn, op, e), TI_SUCCESS);
	tx_put(x.users, tx_one(x.acq, TI_SUCCESS));
	return operand[0];
}

static void atomics(void)
{
	uint64_t *there = (uint64_t *)x.remote.at;
	uint32_t *halves = (uint32_t *)x.remote.at;
	uint32_t piece = 4, bytes = sizeof piece;
	ti_data_element_t *e;

	check_case("atomics");
	there[0] = 40;
	there[1] = 0;
	CHECK_EQ(atomic8(TI_ATOMIC_FETCH_ADD, 2, 0, 0), 40);
	CHECK_EQ(there[0], 42);
	CHECK_EQ(atomic8(TI_ATOMIC_COMPARE_SWAP, 41, 7, 0), 42);
	CHECK_EQ(there[0], 42);
	CHECK_EQ(atomic8(TI_ATOMIC_COMPARE_SWAP, 42, 7, 0), 42);
	CHECK_EQ(there[0], 7);
	halves[0] = 0xffffffff;
	halves[1] = 5;
	CHECK_EQ(atomic4(TI_ATOMIC_FETCH_ADD, 2, 0, 0), 0xffffffff);
	CHECK_EQ(halves[0], 1); /* no carry into the other half */
	CHECK_EQ(halves[1], 5);
	CHECK_EQ(atomic4(TI_ATOMIC_FETCH_ADD, 10, 0, 4), 5);
	CHECK_EQ(halves[1], 15);
	CHECK_EQ(atomic4(TI_ATOMIC_COMPARE_SWAP, 14, 1, 4), 15);
	CHECK_EQ(halves[1], 15);
	CHECK_EQ(atomic4(TI_ATOMIC_COMPARE_SWAP, 15, 99, 4), 15);
	CHECK_EQ(halves[1], 99);
	CHECK_EQ(halves[0], 1);
	TX_IS(tx->io_ctl(x.w.ti, TI_SET_RDMA_PIECE, &bytes, &piece), TI_SUCCESS);
	CHECK_EQ(atomic8(TI_ATOMIC_FETCH_ADD, 1, 0, 8), 0); /* is not divided */
	CHECK_EQ(there[1], 1);
	piece = 0;
	TX_IS(tx->io_ctl(x.w.ti, TI_SET_RDMA_PIECE, &bytes, &piece), TI_SUCCESS);
	e = tx_towards(&x, 64, 4, 2);
	TX_IS(tx->atomic_op(x.a.conn, TI_ATOMIC_FETCH_ADD, e), TI_INVALID_ADDRESS);
	e->local_data_desc->byte_count = 3;
	TX_IS(tx->atomic_op(x.a.conn, TI_ATOMIC_FETCH_ADD, e), TI_INVALID_PARAMETER);
	TX_IS(tx->atomic_op(x.a.conn, 5, e), TI_INVALID_PARAMETER);
	TX_IS(tx->atomic_op(x.a.conn, TI_ATOMIC_FETCH_ADD, NULL), TI_INVALID_PARAMETER);
	TX_IS(tx->atomic_op(NULL, TI_ATOMIC_FETCH_ADD, e), TI_INVALID_HANDLE);
	tx_put(x.users, e);
}

static void unreliable(void)
{
	ti_conn_attr_t attr = {.auto_cq_rearm = TRUE};
	ti_data_element_t *e, *m;

	tx_rdma_begin(&x, &attr);
	check_case("unreliable");
	e = tx_towards(&x, 0, 8, 0);
	TX_IS(tx->rdma_read(x.a.conn, e), TI_INVALID_OPERATION);
	TX_IS(tx->atomic_op(x.a.conn, TI_ATOMIC_FETCH_ADD, e), TI_INVALID_OPERATION);
	m = tx_message(&x.w, "x", 2);
	TX_IS(tx->rdma_read_send(x.a.conn, e, m), TI_INVALID_OPERATION);
	TX_IS(tx->msg_send(x.a.conn, m), TI_SUCCESS);
	CHECK(tx_one(x.acq, TI_SUCCESS) == m);
	CHECK_EQ(tx_one(x.pcq, TI_SUCCESS)->recv_byte_count, 2);
	tx_fill(x.local.at, 8, 9);
	TX_IS(tx->rdma_write(x.a.conn, e), TI_SUCCESS);
	CHECK(tx_one(x.acq, TI_SUCCESS) == e);
	/* That it was sent does not say that it has arrived. */
	for (double end = now_ms() + TX_WAIT_MS;
		memcmp(x.local.at, x.remote.at, 8) && now_ms() < end;)
		sched_yield();
	CHECK(!memcmp(x.local.at, x.remote.at, 8));
	tx_rdma_end(&x);
}

/* ---- callbacks ---- */

enum { BUSY = 600 };
static _Atomic bool served;
static struct tx_count busy_done = TX_COUNT, served_done = TX_COUNT;
static ti_conn_handle_t busy;

/* Writes again what completed, so that this connection always has completions. */
static void again(ti_cq_handle_t h, ti_data_element_t *list)
{
	ti_data_element_t *next;

	(void)h;
	for (; list; list = next) {
		next = list->p_next_msg;
		list->p_next_msg = NULL;
		if (served || tx->rdma_write(busy, list))
			tx_add(&busy_done, 1);
	}
}

static void serve(ti_cq_handle_t h, ti_data_element_t *list)
{
	(void)h;
	(void)list;
	served = true;
	tx_add(&served_done, 1);
}

static struct tx_count of_messages = TX_COUNT, of_rdma = TX_COUNT;

static unsigned put_back(ti_data_element_t *list)
{
	unsigned n = 0;

	for (ti_data_element_t *e = list; e; e = e->p_next_msg)
		n++;
	tx_put(x.users, list);
	return n;
}

static void message_sent(ti_cq_handle_t h, ti_data_element_t *list)
{
	CHECK(h == x.acq);
	tx_add(&of_messages, put_back(list));
}

static void rdma_done(ti_cq_handle_t h, ti_data_element_t *list)
{
	CHECK(h == x.acq);
	tx_add(&of_rdma, put_back(list));
}

/* Of one queue, each kind of transfer has its callback. */
static void each_its_own(void)
{
	struct tx_end b = x.a, q = x.p;

	check_case("callbacks of their own");
	b.comp.pfn_send_cb = message_sent;
	b.comp.pfn_rdma_cb = rdma_done;
	b.done = q.done = (struct tx_count)TX_COUNT;
	tx_connect(&b, &q);
	for (int i = 0; i < 3; i++)
		TX_IS(tx->rdma_write(b.conn, tx_towards(&x, 0, 8, 0)), TI_SUCCESS);
	TX_IS(tx->rdma_read(b.conn, tx_towards(&x, 0, 8, 0)), TI_SUCCESS);
	TX_IS(tx->rdma_write_send(b.conn, tx_towards(&x, 0, 8, 0), tx_local(&x, 0, 8)), TI_SUCCESS);
	TX_IS(tx->msg_send(b.conn, tx_local(&x, 0, 8)), TI_SUCCESS);
	tx_await(&of_messages, 2);
	tx_await(&of_rdma, 5);
	tx_disconnect(&b); /* no more come */
	CHECK_EQ(tx_now(&of_messages), 2);
	CHECK_EQ(tx_now(&of_rdma), 5);
	tx_disconnect(&q);
	tx_put(x.w.pool, tx_poll(x.pcq, TX_RECEIVES));
}

/* A connection whose completions never end does not keep others from their callbacks. */
static void fair(void)
{
	uint32_t none = 0;
	struct tx_end b = x.a, q = x.p;
	ti_res_pool_handle_t many;
	ti_data_element_t *e, *next;
	ti_rdma_desc_t d = x.remote.desc;

	check_case("fairness");
	b.comp.pfn_rdma_cb = again;
	b.attr.max_transfer_depth = BUSY;
	b.done = q.done = (struct tx_count)TX_COUNT;
	q.receives = 0;
	tx_connect(&b, &q);
	busy = b.conn;
	TX_IS(tx->res_pool_create(x.w.ti, TI_RES_POOL_MSG, BUSY, 1, &none, 0, &many), TI_SUCCESS);
	for (e = tx_get(many, BUSY); e; e = next) {
		next = e->p_next_msg;
		e->p_next_msg = NULL;
		e->local_data_desc[0] = (ti_local_data_desc_t){x.local.at, x.local.desc.rkey, 8};
		e->msg_opt = TI_OPT_SIGNALED;
		TX_IS(ti_rdma_set_remote(e, &d), TI_SUCCESS);
		TX_IS(tx->rdma_write(busy, e), TI_SUCCESS);
	}
	b = x.a;
	q = x.p;
	b.comp.pfn_send_cb = serve;
	b.done = q.done = (struct tx_count)TX_COUNT;
	tx_connect(&b, &q);
	TX_IS(tx->msg_send(b.conn, tx_message(&x.w, "x", 1)), TI_SUCCESS);
	tx_await(&served_done, 1);
	tx_await(&busy_done, BUSY);
}

int main(void)
{
	tx_rdma_begin(&x, NULL);
	single();
	pairs();
	pieces();
	bundles();
	lists();
	long_bundles();
	limits();
	atomics();
	each_its_own();
	fair();
	tx_rdma_end(&x);
	pieces_that_wait();
	bad_bundle();
	fenced();
	unreliable();
	return check_result();
}
