// SPDX-License-Identifier: BSD-3-Clause
/*
 * What a program may do to libweftti at its worst: ends within every callback, handles that others
 * close meanwhile, very many calls at once, sizes at both ends.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

static struct tx_world w;
static ti_cq_handle_t cq;

static void begin(void)
{
	tx_begin(&w);
	cq = tx_cq(&w, 4096);
}

static ti_conn_info_t info(struct tx_end *e, bool listens, ti_conn_req_cb_t cb)
{
	return (ti_conn_info_t){.src_ep = listens ? w.ep : w.any,
		.dst_ep = listens ? NULL : w.ep,
		.pdh = w.pd,
		.conn_request_cb = cb,
		.context = e};
}

/* ---- ends within callbacks ---- */

enum where { AT_REQUEST, AT_REPLY, AT_SEND, AT_RECV, AT_ERROR, AT_GONE, PLACES };

static enum where place;
static bool destroys;     /* all; else the connection */
static _Atomic bool ends; /* the service, at any time from now */
static struct tx_end a, p;
static ti_conn_handle_t listener, caller;
static struct tx_count all_gone, told;

/* Another callback, or the test, may end the service meanwhile, and all that it has. */
static void is_destroyed(ti_status_t status)
{
	if (!ends || status != TI_INVALID_HANDLE)
		TX_IS(status, TI_SUCCESS);
}

/* What is called from callbacks answers, whatever it answers. */
static void call_all(void)
{
	uint32_t size = 8, bytes = sizeof(ti_conn_profile_t);
	ti_conn_profile_t profile = {.conn = caller};
	ti_res_pool_handle_t pool;
	ti_data_element_t *list;
	ti_cq_handle_t q;

	(void)tx->poll_cq(cq, &list);
	(void)tx->rearm_cq(cq);
	(void)tx->io_ctl(w.ti, TI_GET_CONN_PROFILE, &bytes, &profile);
	if (!tx->create_cq(w.ti, w.pd, 8, &q))
		is_destroyed(tx->destroy_cq(q));
	if (!tx->res_pool_create(w.ti, TI_RES_POOL_MSG, 1, 1, &size, 0, &pool))
		is_destroyed(tx->res_pool_destroy(pool));
}

static void gone(void *unused);

static void end_at(enum where here)
{
	if (here != place)
		return;
	call_all();
	if (destroys) {
		(void)tx->destroy_ti(w.ti, tx_told, &all_gone);
	} else {
		(void)tx->disconnect(caller, gone, NULL);
		(void)tx->disconnect(p.conn, gone, NULL);
	}
	call_all();
	tx_add(&told, 1);
}

static void gone(void *unused)
{
	(void)unused;
	end_at(AT_GONE);
}

/* What it ended is stale, that of which this is the callback, too. */
static void answer(ti_conn_request_t *req, enum where here)
{
	struct tx_end *e = req->context;

	end_at(here);
	if (place == here) {
		TX_IS(tx->accept(req, 0, &e->comp, NULL), TI_INVALID_HANDLE);
		tx_add(&e->done, 1);
	} else {
		tx_accept(req);
	}
}

static void requested(ti_conn_request_t *req)
{
	p.conn = req->conn_handle;
	answer(req, AT_REQUEST);
}

static void replied(ti_conn_request_t *req)
{
	answer(req, AT_REPLY);
}

static void sent(ti_cq_handle_t h, ti_data_element_t *list)
{
	(void)h;
	(void)tx->res_pool_put(w.pool, list);
	end_at(AT_SEND);
}

static void received(ti_cq_handle_t h, ti_data_element_t *list)
{
	(void)h;
	(void)tx->res_pool_put(w.pool, list);
	end_at(AT_RECV);
}

static void broke(ti_err_rec_t *rec)
{
	(void)rec;
	end_at(AT_ERROR);
}

/* As far as it comes. */
static void live(void)
{
	ti_data_element_t *m;

	tx_await(&a.done, 1);
	if (a.status || place <= AT_REPLY)
		return;
	tx_await(&p.done, 1);
	m = tx_message(&w, "x", 1);
	TX_IS(tx->msg_send(a.conn, m), TI_SUCCESS);
	if (place == AT_ERROR || place == AT_GONE)
		(void)tx->disconnect(p.conn, gone, NULL);
}

static void end_within(enum where where, bool all)
{
	ti_conn_info_t down, up;

	check_case("%s in callback %d", all ? "destroy_ti" : "disconnect", where);
	begin();
	place = where;
	ends = destroys = all;
	all_gone = told = (struct tx_count)TX_COUNT;
	tx_defaults(&a, &w, cq);
	a.comp.pfn_send_cb = sent;
	a.comp.pfn_recv_cb = received;
	a.comp.pfn_err_cb = broke;
	p = a;
	p.receives = 4;
	down = info(&p, true, requested);
	up = info(&a, false, replied);
	TX_IS(tx->listen(w.ti, &p.attr, &down, NULL, &listener), TI_SUCCESS);
	TX_IS(tx->connect(w.ti, &a.attr, &up, NULL, &caller), TI_SUCCESS);
	if (where != AT_REQUEST)
		live();
	tx_await(&told, 1);
	if (all)
		tx_await(&all_gone, 1);
	ends = true;
	if (!all)
		tx_end(&w);
}

/* ---- handles that others close ---- */

enum { THREADS = 3, ROUNDS = 30, HANDLES = 16 };

static _Atomic(void *) handles[HANDLES];
static _Atomic bool stop;

static void *use_any(void *arg)
{
	unsigned seed = (uintptr_t)arg;
	ti_comp_info_t comp = {.h_send_cq = cq, .h_recv_cq = cq};
	ti_data_element_t *list;
	ti_local_data_desc_t d;

	while (!stop) {
		void *h = handles[rand_r(&seed) % HANDLES];
		ti_data_element_t *m = NULL;
		ti_pool_response_t r;
		ti_conn_request_t req = {.conn_handle = h};
		ti_conn_profile_t profile = {.conn = h};
		uint32_t bytes = sizeof profile;

		if (!tx->res_pool_get(w.pool, 1, FALSE, NULL, NULL, NULL, &r))
			m = r.p_element_list;
		(void)tx->poll_cq(h, &list);
		(void)tx->rearm_cq(h);
		(void)tx->io_ctl(w.ti, TI_GET_CONN_PROFILE, &bytes, &profile);
		(void)tx->reject(&req);
		req.conn_handle = h;
		(void)tx->accept(&req, 0, &comp, NULL);
		(void)ti_mem_lkey(h, &d.lkey);
		if (m && tx->rdma_write(h, m) && tx->atomic_op(h, TI_ATOMIC_FETCH_ADD, m) &&
			tx->msg_recv(h, m) && tx->msg_send(h, m))
			tx_put(w.pool, m);
		switch (rand_r(&seed) % 8) {
		case 0:
			(void)tx->disconnect(h, NULL, NULL);
			break;
		case 1:
			(void)tx->destroy_cq(h);
			break;
		case 2:
			(void)tx->dereg_mem(h);
			break;
		case 3:
			(void)tx->res_pool_destroy(h);
			break;
		case 4:
			(void)tx->destroy_endpoint(h);
			break;
		case 5:
			(void)tx->destroy_pd(h);
			break;
		default:
			break;
		}
	}
	return NULL;
}

/* Several at once: each with an end of its own. */
static void keep_handle(ti_conn_request_t *req)
{
	struct tx_end e;

	tx_defaults(&e, &w, cq);
	handles[3] = req->conn_handle;
	if (req->status)
		(void)tx->disconnect(req->conn_handle, NULL, NULL);
	else
		(void)tx->accept(req, 0, &e.comp, NULL);
}

static void make_handles(void)
{
	static char memory[4096];
	ti_conn_info_t down = info(&p, true, keep_handle), up = info(&a, false, keep_handle);
	ti_rdma_desc_t desc;
	uint32_t size = 64;
	void *h;

	(void)tx->listen(w.ti, &p.attr, &down, NULL, (ti_conn_handle_t *)&h);
	handles[0] = h;
	(void)tx->connect(w.ti, &a.attr, &up, NULL, (ti_conn_handle_t *)&h);
	handles[1] = h;
	(void)tx->create_cq(w.ti, w.pd, 64, (ti_cq_handle_t *)&h);
	handles[4] = h;
	(void)tx->reg_virt_mem(
		w.ti, w.pd, memory, sizeof memory, TI_MEM_READ_WRITE, &desc, (ti_mem_handle_t *)&h);
	handles[5] = h;
	(void)tx->res_pool_create(
		w.ti, TI_RES_POOL_MSG, 2, 1, &size, 0, (ti_res_pool_handle_t *)&h);
	handles[6] = h;
	(void)tx->create_endpoint(w.ti, &(ti_inet_addr_t){0}, 0, (ti_endpoint_handle_t *)&h);
	handles[7] = h;
	(void)tx->create_pd(w.ti, w.ep, (ti_pd_handle_t *)&h);
	handles[8] = h;
}

/* Nothing crashes or hangs, and the service can be ended. */
static void closed_by_others(void)
{
	pthread_t threads[THREADS];

	check_case("closed by others");
	begin();
	tx_defaults(&a, &w, cq);
	tx_defaults(&p, &w, cq);
	stop = false;
	handles[2] = (void *)UINTPTR_MAX;
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, use_any, (void *)(i + 1));
	for (int i = 0; i < ROUNDS; i++) {
		make_handles();
		usleep(2000);
	}
	stop = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	tx_end(&w);
}

/* ---- many at once ---- */

enum { MANY = 64 };

static struct tx_count accepted;

static void accept_many(ti_conn_request_t *req)
{
	struct tx_end e;

	tx_defaults(&e, &w, cq);
	TX_IS(req->status, TI_SUCCESS);
	TX_IS(tx->accept(req, 0, &e.comp, NULL), TI_SUCCESS);
	tx_add(&accepted, 1);
}

static void many_at_once(void)
{
	ti_conn_info_t down, up;
	ti_conn_handle_t h;

	check_case("many at once");
	begin();
	accepted = (struct tx_count)TX_COUNT;
	tx_defaults(&a, &w, cq);
	down = info(NULL, true, accept_many);
	up = info(NULL, false, accept_many);
	TX_IS(tx->listen(w.ti, &a.attr, &down, NULL, &h), TI_SUCCESS);
	for (int i = 0; i < MANY; i++)
		TX_IS(tx->connect(w.ti, &a.attr, &up, NULL, &h), TI_SUCCESS);
	tx_await(&accepted, 2 * MANY);
	tx_end(&w);
}

/* ---- sizes ---- */

enum { LONG = 1000 };

static void sizes(void)
{
	ti_local_data_desc_t d;
	ti_res_pool_handle_t pool;
	ti_data_element_t *list, *m;
	uint32_t size = 8;

	check_case("sizes");
	begin();
	tx_defaults(&a, &w, cq);
	tx_defaults(&p, &w, cq);
	p.receives = 2;
	tx_connect(&a, &p);
	TX_IS(tx->res_pool_create(w.ti, TI_RES_POOL_MSG, LONG, 1, &size, 0, &pool), TI_SUCCESS);
	list = tx_get(pool, LONG); /* more than may be under way: none is */
	TX_IS(tx->msg_send(a.conn, list), TI_INSUFFICIENT_RESOURCES);
	TX_IS(tx->msg_recv(a.conn, list), TI_INSUFFICIENT_RESOURCES);
	tx_put(pool, list);
	m = tx_message(&w, "", 0);
	TX_IS(tx->msg_send(a.conn, m), TI_SUCCESS);
	list = tx_poll(cq, 2);
	CHECK_EQ((list == m ? list->p_next_msg : list)->recv_byte_count, 0);
	tx_put(w.pool, list);
	m = tx_message(&w, "", 0);
	m->num_io_bufs = 0;
	TX_IS(tx->msg_send(a.conn, m), TI_SUCCESS);
	list = tx_poll(cq, 2);
	TX_IS(list->status, TI_SUCCESS);
	TX_IS(list->p_next_msg->status, TI_SUCCESS);
	tx_put(w.pool, list);
	m = tx_message(&w, "", 0);
	d = *m->local_data_desc;
	for (int shift = 32; shift < 64; shift++) {
		m->local_data_desc->byte_count = (uint64_t)1 << shift;
		TX_IS(tx->msg_recv(a.conn, m), TI_INVALID_PARAMETER);
		TX_IS(tx->msg_send(a.conn, m), TI_INVALID_PARAMETER);
		TX_IS(ti_rdma_set_remote(m, &(ti_rdma_desc_t){4096, 1}), TI_SUCCESS);
		TX_IS(tx->rdma_write(a.conn, m), TI_INVALID_PARAMETER);
	}
	*m->local_data_desc = d;
	tx_put(w.pool, m);
	tx_end(&w);
}

/* ---- receives given back while their service ends ---- */

enum { ENDS = 40 };

static _Atomic unsigned given;
static unsigned callbacks;

static void count_back(ti_cq_handle_t h, ti_data_element_t *list)
{
	(void)h;
	callbacks += list != NULL;
}

/* The same list in turns, for as long as it comes back; by callback or in the queue. */
static void *accept_stale(void *arg)
{
	ti_conn_request_t stale = {.conn_handle = (void *)0x1234};
	ti_comp_info_t comp = {
		.h_send_cq = cq, .h_recv_cq = cq, .pfn_recv_cb = arg ? count_back : NULL};
	ti_data_element_t *list = tx_get(w.pool, 3), *back;

	for (;; given++) {
		callbacks = 0;
		TX_IS(tx->accept(&stale, 0, &comp, list), TI_INVALID_HANDLE);
		if (arg ? !callbacks : tx->poll_cq(cq, &back) || !back)
			return NULL;
	}
}

static void given_back(void)
{
	pthread_t thread;

	check_case("receives given back while their service ends");
	for (uintptr_t i = 0; i < ENDS; i++) {
		begin();
		given = 0;
		CHECK(!pthread_create(&thread, NULL, accept_stale, (void *)(i % 2)));
		while (given < 10)
			usleep(10);
		tx_end(&w);
		CHECK(!pthread_join(thread, NULL));
	}
}

int main(void)
{
	for (enum where x = 0; x < PLACES; x++)
		end_within(x, false);
	for (enum where x = 0; x < PLACES; x++)
		end_within(x, true);
	closed_by_others();
	many_at_once();
	given_back();
	sizes();
	return check_result();
}
