// SPDX-License-Identifier: BSD-3-Clause
/* Bad handles: a status each, and nothing is done.  Handles destroyed beside who begins to use
 * them. */
#include <arpa/inet.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

static struct tx_world w, other;
static ti_cq_handle_t cq;
static struct tx_end a, p;

/* ---- each operation with a handle ---- */

static ti_conn_attr_t attr = {.reliable = TRUE};
static ti_conn_info_t info;
static ti_conn_request_t req;
static ti_comp_info_t comp;
static ti_pool_response_t resp;
static ti_rdma_desc_t desc;
static char memory[4096];

static void no_request(ti_conn_request_t *r)
{
	(void)r;
	die("a request came");
}

static ti_status_t do_debug(void *h)
{
	return tx->debug_svc(h, TI_DBG_STD);
}

static ti_status_t do_destroy_ti(void *h)
{
	return tx->destroy_ti(h, NULL, NULL);
}

static ti_status_t do_endpoint(void *h)
{
	ti_endpoint_handle_t out = (void *)1;
	ti_inet_addr_t addr;
	ti_status_t st;

	SET_IPV4_ADDR(addr, htonl(INADDR_LOOPBACK));
	st = tx->create_endpoint(h, &addr, 0, &out);
	CHECK(!out);
	return st;
}

static ti_status_t do_create_pd(void *h)
{
	ti_pd_handle_t out = (void *)1;
	ti_status_t st = tx->create_pd(h, w.ep, &out);

	CHECK(!out);
	return st;
}

static ti_status_t do_pd_of(void *h)
{
	ti_pd_handle_t out = (void *)1;
	ti_status_t st = tx->create_pd(w.ti, h, &out);

	CHECK(!out);
	return st;
}

static ti_status_t do_create_cq(void *h)
{
	ti_cq_handle_t out = (void *)1;
	ti_status_t st = tx->create_cq(h, w.pd, 8, &out);

	CHECK(!out);
	return st;
}

static ti_status_t do_cq_of(void *h)
{
	ti_cq_handle_t out = (void *)1;
	ti_status_t st = tx->create_cq(w.ti, h, 8, &out);

	CHECK(!out);
	return st;
}

static ti_status_t do_poll(void *h)
{
	ti_data_element_t *list = (void *)1;
	ti_status_t st = tx->poll_cq(h, &list);

	CHECK(!list);
	return st;
}

static ti_status_t do_rearm(void *h)
{
	return tx->rearm_cq(h);
}

static ti_status_t do_destroy_cq(void *h)
{
	return tx->destroy_cq(h);
}

static ti_status_t do_destroy_endpoint(void *h)
{
	return tx->destroy_endpoint(h);
}

static ti_status_t do_destroy_pd(void *h)
{
	return tx->destroy_pd(h);
}

static ti_status_t do_connect(void *h)
{
	ti_conn_handle_t out = (void *)1;
	ti_status_t st = tx->connect(h, &attr, &info, NULL, &out);

	CHECK(!out);
	return st;
}

static ti_status_t do_listen(void *h)
{
	ti_conn_handle_t out = (void *)1;
	ti_status_t st = tx->listen(h, &attr, &info, NULL, &out);

	CHECK(!out);
	return st;
}

static ti_status_t do_accept(void *h)
{
	req.conn_handle = h;
	return tx->accept(&req, 0, &comp, NULL);
}

static ti_status_t do_reject(void *h)
{
	req.conn_handle = h;
	return tx->reject(&req);
}

static ti_status_t do_disconnect(void *h)
{
	return tx->disconnect(h, NULL, NULL);
}

static ti_status_t do_reg(void *h)
{
	ti_mem_handle_t out = (void *)1;
	ti_status_t st = tx->reg_virt_mem(h, w.pd, memory, sizeof memory, TI_MEM_READ, &desc, &out);

	CHECK(!out);
	return st;
}

static ti_status_t do_reg_in(void *h)
{
	ti_mem_handle_t out = (void *)1;
	ti_status_t st = tx->reg_virt_mem(w.ti, h, memory, sizeof memory, TI_MEM_READ, &desc, &out);

	CHECK(!out);
	return st;
}

static ti_status_t do_phys(void *h)
{
	uint64_t page = (uintptr_t)memory & ~4095ull;
	ti_mem_handle_t out = (void *)1;
	ti_status_t st = tx->reg_phys_mem(h, w.pd, &page, 1, TI_MEM_READ, &desc, &out);

	CHECK(!out);
	return st;
}

static ti_status_t do_dereg(void *h)
{
	return tx->dereg_mem(h);
}

static ti_status_t do_lkey(void *h)
{
	ti_region_key_t key;

	return ti_mem_lkey(h, &key);
}

static ti_status_t do_pool(void *h)
{
	ti_res_pool_handle_t out = (void *)1;
	uint32_t size = 64;
	ti_status_t st = tx->res_pool_create(h, TI_RES_POOL_MSG, 1, 1, &size, 0, &out);

	CHECK(!out);
	return st;
}

static ti_status_t do_destroy_pool(void *h)
{
	return tx->res_pool_destroy(h);
}

static ti_status_t do_get(void *h)
{
	return tx->res_pool_get(h, 1, FALSE, NULL, NULL, NULL, &resp);
}

/* With an element that is fine. */
static ti_data_element_t *element;

static ti_status_t do_put(void *h)
{
	return tx->res_pool_put(h, element);
}

static ti_status_t do_send(void *h)
{
	return tx->msg_send(h, element);
}

static ti_status_t do_recv(void *h)
{
	return tx->msg_recv(h, element);
}

static ti_status_t do_read(void *h)
{
	return tx->rdma_read(h, element);
}

static ti_status_t do_write(void *h)
{
	return tx->rdma_write(h, element);
}

static ti_status_t do_read_send(void *h)
{
	return tx->rdma_read_send(h, element, element);
}

static ti_status_t do_write_send(void *h)
{
	return tx->rdma_write_send(h, element, element);
}

static ti_status_t do_atomic(void *h)
{
	return tx->atomic_op(h, TI_ATOMIC_FETCH_ADD, element);
}

static ti_status_t do_io_ctl(void *h)
{
	uint32_t bytes = 4, value = 0;

	return tx->io_ctl(h, TI_SET_PENDING, &bytes, &value);
}

static ti_status_t do_profile(void *h)
{
	ti_conn_profile_t prof = {.conn = h};
	uint32_t bytes = sizeof prof;

	return tx->io_ctl(w.ti, TI_GET_CONN_PROFILE, &bytes, &prof);
}

enum kind { SERVICE, ENDPOINT, PD, CQ, CONN, MEM, POOL, KINDS };

/* What each answers to a bad handle, as its page says. */
static const struct op {
	const char *name;
	ti_status_t (*call)(void *h);
	enum kind kind;
	ti_status_t want;
} ops[] = {
	{"destroy_ti", do_destroy_ti, SERVICE, TI_INVALID_HANDLE},
	{"debug_svc", do_debug, SERVICE, TI_INVALID_HANDLE},
	{"create_endpoint", do_endpoint, SERVICE, TI_INVALID_HANDLE},
	{"create_pd", do_create_pd, SERVICE, TI_INVALID_HANDLE},
	{"create_pd's endpoint", do_pd_of, ENDPOINT, TI_INVALID_PARAMETER},
	{"create_cq", do_create_cq, SERVICE, TI_INVALID_HANDLE},
	{"create_cq's domain", do_cq_of, PD, TI_INVALID_PARAMETER},
	{"connect", do_connect, SERVICE, TI_INVALID_HANDLE},
	{"listen", do_listen, SERVICE, TI_INVALID_HANDLE},
	{"reg_virt_mem", do_reg, SERVICE, TI_INVALID_HANDLE},
	{"reg_virt_mem's domain", do_reg_in, PD, TI_INVALID_HANDLE},
	{"reg_phys_mem", do_phys, SERVICE, TI_INVALID_HANDLE},
	{"res_pool_create", do_pool, SERVICE, TI_INVALID_HANDLE},
	{"io_ctl", do_io_ctl, SERVICE, TI_INVALID_HANDLE},
	{"destroy_endpoint", do_destroy_endpoint, ENDPOINT, TI_INVALID_PARAMETER},
	{"destroy_pd", do_destroy_pd, PD, TI_INVALID_PARAMETER},
	{"poll_cq", do_poll, CQ, TI_INVALID_PARAMETER},
	{"rearm_cq", do_rearm, CQ, TI_INVALID_PARAMETER},
	{"destroy_cq", do_destroy_cq, CQ, TI_INVALID_PARAMETER},
	{"accept", do_accept, CONN, TI_INVALID_HANDLE},
	{"reject", do_reject, CONN, TI_INVALID_HANDLE},
	{"disconnect", do_disconnect, CONN, TI_INVALID_HANDLE},
	{"TI_GET_CONN_PROFILE", do_profile, CONN, TI_INVALID_HANDLE},
	{"msg_send", do_send, CONN, TI_INVALID_HANDLE},
	{"msg_recv", do_recv, CONN, TI_INVALID_HANDLE},
	{"rdma_read", do_read, CONN, TI_INVALID_HANDLE},
	{"rdma_write", do_write, CONN, TI_INVALID_HANDLE},
	{"rdma_read_send", do_read_send, CONN, TI_INVALID_HANDLE},
	{"rdma_write_send", do_write_send, CONN, TI_INVALID_HANDLE},
	{"atomic_op", do_atomic, CONN, TI_INVALID_HANDLE},
	{"dereg_mem", do_dereg, MEM, TI_INVALID_HANDLE},
	{"ti_mem_lkey", do_lkey, MEM, TI_INVALID_HANDLE},
	{"res_pool_destroy", do_destroy_pool, POOL, TI_INVALID_HANDLE},
	{"res_pool_get", do_get, POOL, TI_INVALID_HANDLE},
	{"res_pool_put", do_put, POOL, TI_INVALID_HANDLE},
};

/*
 * Handles of each kind whose objects are gone, whose service is gone with all of them, is about to
 * go, and of objects that are there.
 */
static void *stale[KINDS], *ended[KINDS], *ending[KINDS], *alive[KINDS];

static void each_operation(void)
{
	for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
		const struct op *op = &ops[i];

		check_case("%s, NULL", op->name);
		TX_IS(op->call(NULL), op->want);
		check_case("%s, no handle", op->name);
		TX_IS(op->call((void *)~0ul), op->want);
		TX_IS(op->call(memory), op->want);
		check_case("%s, a stale handle", op->name);
		TX_IS(op->call(stale[op->kind]), op->want);
		check_case("%s, a handle of a service that has ended", op->name);
		TX_IS(op->call(ended[op->kind]), op->want);
		check_case("%s, a handle of a service that destroy_ti() has halted", op->name);
		TX_IS(op->call(ending[op->kind]), op->want);
		for (enum kind k = 0; k < KINDS; k++) {
			check_case("%s, a handle of kind %d", op->name, (int)k);
			if (k != op->kind)
				TX_IS(op->call(alive[k]), op->want);
		}
	}
}

/* ---- objects of another service ---- */

static void foreign(void)
{
	ti_conn_info_t i = info;
	ti_conn_handle_t conn = (void *)1;
	ti_data_element_t *e;

	check_case("another service's");
	TX_IS(do_pd_of(other.ep), TI_INVALID_PARAMETER);
	TX_IS(do_cq_of(other.pd), TI_INVALID_PARAMETER);
	TX_IS(do_reg_in(other.pd), TI_INVALID_HANDLE);
	i.pdh = other.pd;
	TX_IS(tx->connect(w.ti, &attr, &i, NULL, &conn), TI_INVALID_PARAMETER);
	i = info;
	i.dst_ep = other.ep;
	TX_IS(tx->connect(w.ti, &attr, &i, NULL, &conn), TI_INVALID_PARAMETER);
	i = info;
	i.src_ep = other.ep;
	TX_IS(tx->listen(w.ti, &attr, &i, NULL, &conn), TI_INVALID_PARAMETER);
	i = info;
	i.send_cqh = tx_cq(&other, 8);
	TX_IS(tx->listen(w.ti, &attr, &i, NULL, &conn), TI_INVALID_PARAMETER);
	CHECK(!conn);
	TX_IS(tx->destroy_cq(i.send_cqh), TI_SUCCESS);
	e = tx_get(other.pool, 1);
	e->num_io_bufs = 0;
	TX_IS(tx->msg_send(a.conn, e), TI_INVALID_PARAMETER);
	TX_IS(tx->msg_recv(a.conn, e), TI_INVALID_PARAMETER);
	TX_IS(tx->res_pool_put(w.pool, e), TI_INVALID_PARAMETER);
	tx_put(other.pool, e);
}

/* ---- making them ---- */

static void make_stale(void)
{
	uint32_t size = 64;
	ti_conn_info_t i = info;

	stale[ENDPOINT] = tx_endpoint(w.ti, "127.0.0.1", 0);
	TX_IS(tx->destroy_endpoint(stale[ENDPOINT]), TI_SUCCESS);
	TX_IS(tx->create_pd(w.ti, w.ep, (ti_pd_handle_t *)&stale[PD]), TI_SUCCESS);
	TX_IS(tx->destroy_pd(stale[PD]), TI_SUCCESS);
	stale[CQ] = tx_cq(&w, 8);
	TX_IS(tx->destroy_cq(stale[CQ]), TI_SUCCESS);
	TX_IS(tx->listen(w.ti, &attr, &i, NULL, (ti_conn_handle_t *)&stale[CONN]), TI_SUCCESS);
	TX_IS(tx->disconnect(stale[CONN], NULL, NULL), TI_SUCCESS);
	TX_IS(tx->reg_virt_mem(w.ti, w.pd, memory, sizeof memory, TI_MEM_READ, &desc,
		      (ti_mem_handle_t *)&stale[MEM]),
		TI_SUCCESS);
	alive[MEM] = stale[MEM];
	TX_IS(tx->dereg_mem(stale[MEM]), TI_SUCCESS);
	TX_IS(tx->reg_virt_mem(w.ti, w.pd, memory, sizeof memory, TI_MEM_READ, &desc,
		      (ti_mem_handle_t *)&alive[MEM]),
		TI_SUCCESS);
	CHECK(alive[MEM] != stale[MEM]);
	TX_IS(tx->res_pool_create(
		      w.ti, TI_RES_POOL_MSG, 1, 1, &size, 0, (ti_res_pool_handle_t *)&stale[POOL]),
		TI_SUCCESS);
	TX_IS(tx->res_pool_destroy(stale[POOL]), TI_SUCCESS);
	alive[SERVICE] = w.ti;
	alive[ENDPOINT] = w.ep;
	alive[PD] = w.pd;
	alive[CQ] = cq;
	alive[CONN] = a.conn;
	alive[POOL] = w.pool;
}

/* A service with one of each kind. */
static void make_all(struct tx_world *of, void *handles[KINDS])
{
	struct tx_end from, to;
	ti_cq_handle_t q;

	tx_begin(of);
	q = tx_cq(of, 64);
	tx_defaults(&from, of, q);
	tx_defaults(&to, of, q);
	to.receives = 4;
	tx_connect(&from, &to);
	TX_IS(tx->reg_virt_mem(of->ti, of->pd, memory, sizeof memory, TI_MEM_READ, &desc,
		      (ti_mem_handle_t *)&handles[MEM]),
		TI_SUCCESS);
	handles[SERVICE] = of->ti;
	handles[ENDPOINT] = of->ep;
	handles[PD] = of->pd;
	handles[CQ] = q;
	handles[CONN] = from.conn;
	handles[POOL] = of->pool;
}

/* The next service may get their places. */
static void make_ended(void)
{
	make_all(&other, ended);
	stale[SERVICE] = other.ti;
	tx_end(&other);
	tx_begin(&other);
}

/* ---- a service that is destroyed, while nothing is done about it yet ---- */

static struct tx_world dying;
static struct tx_count dead = TX_COUNT;

static void make_ending(void)
{
	make_all(&dying, ending);
	tx_hold(&dying);
	TX_IS(tx->destroy_ti(dying.ti, tx_told, &dead), TI_SUCCESS);
}

static void end_ending(void)
{
	CHECK_EQ(tx_now(&dead), 0); /* all that was asked was before its end */
	tx_let_go();
	tx_await(&dead, 1);
}

/* ---- destroyed beside who begins to use it ---- */

enum { ROUNDS = 3000, ACCEPTS = 300 };

/* What a thread destroys as soon as it is there; itself: the thread ends. */
static _Atomic(void *) victim;
static _Atomic ti_status_t destroyed;

static void *destroy_victims(void *are_queues)
{
	void *h;

	while ((h = atomic_exchange(&victim, NULL)) != &victim)
		if (h)
			atomic_store(
				&destroyed, are_queues ? tx->destroy_cq(h) : tx->destroy_pd(h));
	return NULL;
}

static void offer(void *h)
{
	atomic_store(&destroyed, TI_NO_STATUS);
	atomic_store(&victim, h);
}

static ti_status_t outcome(void)
{
	ti_status_t st;

	while ((st = atomic_load(&destroyed)) == TI_NO_STATUS)
		;
	return st;
}

/* One of both succeeds, each time. */
static void domains(void)
{
	unsigned both = 0;
	ti_mem_handle_t mem;
	ti_pd_handle_t pd;
	pthread_t thread;
	ti_status_t used;

	check_case("domains destroyed beside registrations");
	CHECK(!pthread_create(&thread, NULL, destroy_victims, NULL));
	for (int i = 0; i < ROUNDS; i++) {
		TX_IS(tx->create_pd(w.ti, w.ep, &pd), TI_SUCCESS);
		offer(pd);
		used = tx->reg_virt_mem(w.ti, pd, memory, sizeof memory, TI_MEM_READ, &desc, &mem);
		both += outcome() == TI_SUCCESS && used == TI_SUCCESS;
		if (used == TI_SUCCESS)
			TX_IS(tx->dereg_mem(mem), TI_SUCCESS);
		if (atomic_load(&destroyed) == TI_RESOURCE_BUSY)
			TX_IS(tx->destroy_pd(pd), TI_SUCCESS);
	}
	atomic_store(&victim, &victim);
	CHECK(!pthread_join(thread, NULL));
	CHECK_EQ(both, 0);
}

/* Its accept() and a queue's end begin at once: true, both were as they should be. */
static bool accept_beside(ti_conn_request_t *r)
{
	ti_cq_handle_t q = tx_cq(&w, 8);
	ti_comp_info_t c = {.h_send_cq = q, .h_recv_cq = q};
	ti_status_t used;

	offer(q);
	used = tx->accept(r, 0, &c, NULL);
	if (used) {
		TX_IS(used, TI_INVALID_PARAMETER);
		TX_IS(tx->reject(r), TI_SUCCESS);
		return outcome() == TI_SUCCESS;
	}
	used = outcome();
	tx_close(r->conn_handle);
	if (used == TI_INVALID_OPERATION)
		TX_IS(tx->destroy_cq(q), TI_SUCCESS);
	return used == TI_INVALID_OPERATION;
}

static void queues(void)
{
	struct tx_kept k = {.n = TX_COUNT};
	struct tx_end up;
	ti_conn_info_t down = info, to = info;
	ti_conn_handle_t listener, conn;
	unsigned good = 0;
	pthread_t thread;

	check_case("queues destroyed beside who accepts");
	CHECK(!pthread_create(&thread, NULL, destroy_victims, &victim));
	tx_defaults(&up, &w, cq);
	down.src_ep = w.ep;
	down.conn_request_cb = tx_keep;
	down.context = &k;
	to.conn_request_cb = tx_accept;
	to.context = &up;
	TX_IS(tx->listen(w.ti, &attr, &down, NULL, &listener), TI_SUCCESS);
	for (unsigned n = 1; n <= ACCEPTS; n++) {
		TX_IS(tx->connect(w.ti, &attr, &to, NULL, &conn), TI_SUCCESS);
		tx_await(&k.n, n);
		good += accept_beside(&k.req);
		tx_await(&up.done, n);
		if (!up.status)
			tx_close(conn);
	}
	tx_close(listener);
	atomic_store(&victim, &victim);
	CHECK(!pthread_join(thread, NULL));
	CHECK_EQ(good, ACCEPTS);
}

int main(void)
{
	tx_begin(&w);
	cq = tx_cq(&w, 1024);
	tx_defaults(&a, &w, cq);
	tx_defaults(&p, &w, cq);
	tx_connect(&a, &p);
	info = (ti_conn_info_t){
		.src_ep = w.any, .dst_ep = w.ep, .pdh = w.pd, .conn_request_cb = no_request};
	comp = a.comp;
	make_ended();
	make_stale();
	make_ending();
	element = tx_get(w.pool, 1);
	each_operation();
	tx_put(w.pool, element);
	end_ending();
	foreign();
	domains();
	queues();
	check_case("the end");
	tx_disconnect(&a); /* all is as it was */
	tx_disconnect(&p);
	tx_end(&other);
	tx_end(&w);
	return check_result();
}
