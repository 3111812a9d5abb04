// SPDX-License-Identifier: BSD-3-Clause
/* Callbacks: which come, how often, on which threads; the peer's end, a queue that is full. */
#include <stdatomic.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

static struct tx_world w;
static ti_cq_handle_t cq;

static void send_one(const struct tx_end *e)
{
	TX_IS(tx->msg_send(e->conn, tx_message(&w, "x", 1)), TI_SUCCESS);
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
	tx_add(&heard.sends, tx_put(w.pool, list));
}

static void received(ti_cq_handle_t h, ti_data_element_t *list)
{
	CHECK(h == cq);
	tx_add(&heard.recvs, tx_put(w.pool, list));
}

static void broke(ti_err_rec_t *rec)
{
	CHECK(rec->context == &heard);
	heard.code = rec->code;
	tx_add(&heard.errors, 1);
}

static void ends(void)
{
	struct tx_end a, p;
	ti_data_element_t *m;

	check_case("ends");
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
	for (int i = 0; i < 8; i++)
		send_one(&a);
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

/* One of two has completed, the other one cannot: it is told of at once, on both sides. */
static void at_once(void)
{
	struct tx_end a, p;
	ti_data_element_t *two;

	check_case("at once");
	heard.sends.n = heard.recvs.n = 0;
	tx_defaults(&a, &w, cq);
	a.comp.pfn_send_cb = sent;
	a.comp.pfn_recv_cb = received;
	p = a;
	p.receives = 1;
	tx_connect(&a, &p);
	two = tx_message(&w, "x", 1);
	two->p_next_msg = tx_message(&w, "y", 1);
	TX_IS(tx->msg_send(a.conn, two), TI_SUCCESS);
	tx_await(&heard.sends, 1);
	tx_await(&heard.recvs, 1);
	CHECK_EQ(tx_now(&heard.sends), 1);
	TX_IS(tx->msg_recv(p.conn, tx_get(w.pool, 2)), TI_SUCCESS);
	tx_await(&heard.sends, 2);
	tx_await(&heard.recvs, 2);
	CHECK_EQ(tx_now(&heard.recvs), 2); /* and one waits */
	tx_disconnect(&a);
	tx_disconnect(&p);
}

/* The message waits for a receive, so it is posted until the connection ends. */
static void posted_twice(void)
{
	struct tx_end a, p;
	ti_data_element_t *m = tx_message(&w, "x", 1);

	check_case("posted twice");
	tx_defaults(&a, &w, cq);
	p = a;
	tx_connect(&a, &p);
	TX_IS(tx->msg_send(a.conn, m), TI_SUCCESS);
	TX_IS(tx->msg_send(a.conn, m), TI_RESOURCE_BUSY);
	TX_IS(tx->msg_recv(a.conn, m), TI_RESOURCE_BUSY);
	tx_disconnect(&a);
	CHECK_EQ(tx_put(w.pool, tx_poll(cq, 1)), 1);
	tx_disconnect(&p);
}

/* ---- more completions than the queue holds ---- */

/* Of the messages of a to p, n completions that nobody polls for wait in a queue of four. */
static void fill(struct tx_end *a, struct tx_end *p, ti_cq_handle_t small, bool sends, unsigned n)
{
	struct tx_end *full = sends ? a : p;

	heard.errors.n = 0;
	tx_defaults(a, &w, sends ? small : cq);
	tx_defaults(p, &w, sends ? cq : small);
	full->comp.pfn_err_cb = broke;
	full->comp.p_err_context = &heard;
	p->receives = 8;
	tx_connect(a, p);
	for (unsigned i = 0; i < n; i++)
		send_one(a);
}

static void overrun(bool sends, unsigned n)
{
	ti_cq_handle_t small = tx_cq(&w, 4);
	struct tx_end a, p;

	check_case("overrun of %s, %u", sends ? "sends" : "receives", n);
	fill(&a, &p, small, sends, n);
	tx_await(&heard.errors, 1);
	TX_IS(heard.code, TI_CQ_OVERRUN_ERROR);
	tx_put(w.pool, tx_poll(small, sends ? n : 8)); /* none is lost */
	tx_disconnect(&p);
	tx_disconnect(&a);
	tx_put(w.pool, tx_poll(cq, sends ? 8 : n));
	TX_IS(tx->destroy_cq(small), TI_SUCCESS);
	TX_IS(tx->destroy_cq(small), TI_INVALID_PARAMETER);
}

/* As many as it has room for, again and again, are no overrun. */
static void filled(bool sends)
{
	ti_cq_handle_t small = tx_cq(&w, 4);
	struct tx_end a, p;

	check_case("full of %s", sends ? "sends" : "receives");
	fill(&a, &p, small, sends, 4);
	tx_put(w.pool, tx_poll(cq, 4));
	for (ti_data_element_t *e = tx_poll(small, 4), *next; e; e = next) {
		TX_IS(e->status, TI_SUCCESS);
		next = e->p_next_msg;
		e->p_next_msg = NULL;
		tx_put(w.pool, e);
	}
	for (int i = 0; i < 4; i++)
		send_one(&a);
	tx_put(w.pool, tx_poll(cq, 4));
	tx_put(w.pool, tx_poll(small, 4));
	CHECK_EQ(tx_now(&heard.errors), 0);
	tx_disconnect(sends ? &a : &p);
	tx_disconnect(sends ? &p : &a);
	TX_IS(tx->destroy_cq(small), TI_SUCCESS);
}

/* ---- a queue that the program rearms ---- */

static struct tx_count calls = TX_COUNT;

static void called(ti_cq_handle_t h, ti_data_element_t *list)
{
	(void)h;
	CHECK(!list);
	tx_add(&calls, 1);
}

/* Each of them has come: its sender's element comes back no earlier. */
static void send_some(const struct tx_end *from, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		send_one(from);
	tx_put(w.pool, tx_poll(cq, n));
}

/* No callback comes from the one that disarms the queue to rearm_cq(), whoever polls. */
static void unarmed(void)
{
	ti_cq_handle_t own = tx_cq(&w, 64);
	struct tx_end a, p;

	check_case("not armed");
	tx_defaults(&a, &w, cq);
	tx_defaults(&p, &w, own);
	p.attr.auto_cq_rearm = FALSE;
	p.comp.pfn_recv_cb = called;
	p.receives = 8;
	tx_connect(&a, &p);
	send_some(&a, 1);
	tx_await(&calls, 1); /* accept() armed it */
	tx_put(w.pool, tx_poll(own, 1));
	send_some(&a, 2);
	tx_put(w.pool, tx_poll(own, 2));
	send_some(&a, 1);
	TX_IS(tx->rearm_cq(own), TI_SUCCESS);
	send_some(&a, 1);
	tx_await(&calls, 2);
	tx_put(w.pool, tx_poll(own, 2));
	tx_disconnect(&p);
	tx_put(w.pool, tx_poll(own, 3));
	CHECK_EQ(tx_now(&calls), 2);
	tx_disconnect(&a);
	TX_IS(tx->destroy_cq(own), TI_SUCCESS);
}

/* ---- threads ---- */

enum kind { SEND, RECV, RDMA, REQUEST, ERROR, DISCONNECTED, DESTROYED, KINDS };

static _Atomic pid_t threads[KINDS];
static struct tx_count noted[KINDS] = {
	TX_COUNT, TX_COUNT, TX_COUNT, TX_COUNT, TX_COUNT, TX_COUNT, TX_COUNT};

static void note(enum kind kind)
{
	threads[kind] = gettid();
	tx_add(&noted[kind], 1);
}

static void note_send(ti_cq_handle_t h, ti_data_element_t *list)
{
	(void)h;
	(void)list;
	note(SEND);
}

static void note_recv(ti_cq_handle_t h, ti_data_element_t *list)
{
	(void)h;
	(void)list;
	note(RECV);
}

static void note_rdma(ti_cq_handle_t h, ti_data_element_t *list)
{
	(void)h;
	(void)list;
	note(RDMA);
}

static void note_error(ti_err_rec_t *rec)
{
	(void)rec;
	note(ERROR);
}

static void note_request(ti_conn_request_t *req)
{
	tx_accept(req);
	note(REQUEST);
}

static void note_end(void *kind)
{
	note(*(enum kind *)kind);
}

static void write_one(const struct tx_end *e)
{
	static char there[8];
	ti_data_element_t *el = tx_message(&w, "x", 1);
	ti_rdma_desc_t desc;
	ti_mem_handle_t mem;

	TX_IS(tx->reg_virt_mem(w.ti, w.pd, there, sizeof there, TI_MEM_WRITE, &desc, &mem),
		TI_SUCCESS);
	TX_IS(ti_rdma_set_remote(el, &desc), TI_SUCCESS);
	TX_IS(tx->rdma_write(e->conn, el), TI_SUCCESS);
}

static void check_threads(void)
{
	pid_t transfers = threads[SEND];

	CHECK(transfers && transfers != getpid());
	for (enum kind k = 0; k < KINDS; k++) {
		check_case("threads, callback %d", (int)k);
		if (k <= RDMA)
			CHECK_EQ(threads[k], transfers);
		else
			CHECK(threads[k] && threads[k] != transfers && threads[k] != getpid());
	}
}

/* Transfers call back on one thread, all else on others; none on the program's. */
static void on_threads(void)
{
	static enum kind disconnected = DISCONNECTED, destroyed = DESTROYED;
	struct tx_end a, p;

	check_case("threads");
	tx_begin(&w);
	cq = tx_cq(&w, 64);
	tx_defaults(&a, &w, cq);
	a.asked = note_request;
	a.comp.pfn_send_cb = note_send;
	a.comp.pfn_recv_cb = note_recv;
	a.comp.pfn_rdma_cb = note_rdma;
	a.comp.pfn_err_cb = note_error;
	p = a;
	p.receives = 1;
	tx_connect(&a, &p);
	send_one(&a);
	write_one(&a);
	for (enum kind k = SEND; k <= REQUEST; k++)
		tx_await(&noted[k], 1);
	TX_IS(tx->disconnect(p.conn, note_end, &disconnected), TI_SUCCESS);
	tx_await(&noted[DISCONNECTED], 1);
	tx_await(&noted[ERROR], 1);
	TX_IS(tx->destroy_ti(w.ti, note_end, &destroyed), TI_SUCCESS);
	tx_await(&noted[DESTROYED], 1);
	check_threads();
}

/* ---- a callback that takes its time ---- */

static struct tx_end busy_a, busy_p; /* a connection that goes on */

static void waits_for_messages(ti_conn_request_t *req)
{
	unsigned n = tx_now(&heard.sends);

	send_one(&busy_a);
	tx_await(&heard.sends, n + 1);
	tx_accept(req);
}

/* Requests may block in their callbacks: transfers call back meanwhile. */
static void while_one_waits(void)
{
	struct tx_end a, p;

	check_case("while a request's callback waits");
	tx_defaults(&busy_a, &w, cq);
	busy_a.comp.pfn_send_cb = sent;
	busy_a.comp.pfn_recv_cb = received;
	busy_p = busy_a;
	busy_p.receives = 2;
	tx_connect(&busy_a, &busy_p);
	tx_defaults(&a, &w, cq);
	p = a;
	a.asked = p.asked = waits_for_messages;
	tx_connect(&a, &p);
	tx_disconnect(&a);
	tx_disconnect(&p);
	tx_disconnect(&busy_a);
	tx_disconnect(&busy_p);
}

int main(void)
{
	tx_begin(&w);
	cq = tx_cq(&w, 1024);
	ends();
	at_once();
	posted_twice();
	for (unsigned n = 5; n <= 6; n++) {
		overrun(false, n);
		overrun(true, n);
	}
	filled(false);
	filled(true);
	unarmed();
	while_one_waits();
	tx_end(&w);
	on_threads();
	return check_result();
}
