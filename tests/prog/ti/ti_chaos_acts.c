// SPDX-License-Identifier: BSD-3-Clause
#include "tests/prog/ti/ti_chaos.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/prog/ti/ti_watch.h"

enum { SLOTS = 8, KEPT = 8, SIZE = 256 };

enum kind { CONN, CQ, POOL, MEM, EP, PD, KINDS };

static ti_handle_t ti;
static ti_endpoint_handle_t any, ports[CHAOS_PORTS], peers;
static ti_pd_handle_t pd;
static ti_cq_handle_t cq;
static _Atomic(void *) slots[KINDS][SLOTS];
static char memory[1 << 16];

/* Elements are the program's as long as the service is there: who has some reads. */
static pthread_rwlock_t elements = PTHREAD_RWLOCK_INITIALIZER;
static bool ended;
static struct tx_count gone;

/* Services besides, each of one act: how many were begun, and have gone. */
static atomic_uint others;
static struct tx_count others_gone = TX_COUNT;

/* Requests that are answered by other threads. */
static struct {
	pthread_mutex_t lock;
	ti_conn_request_t req[KEPT];
	unsigned n;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- chance ---- */

static _Atomic unsigned seeds;
static _Thread_local unsigned seed;

void chaos_seed(unsigned first)
{
	seeds = first;
}

unsigned chance(unsigned n)
{
	if (!seed)
		seed = atomic_fetch_add(&seeds, 7919);
	return (unsigned)rand_r(&seed) % n;
}

static void *pick(enum kind k)
{
	return slots[k][chance(SLOTS)];
}

ti_conn_handle_t chaos_conn(void)
{
	return pick(CONN);
}

static void put_away(enum kind k, void *h)
{
	if (h)
		slots[k][chance(SLOTS)] = h;
	if (h && k == CONN && chance(2)) /* not all, for a reference changes what happens */
		watch_conn(h);
}

/* ---- the end ---- */

void chaos_end(void)
{
	pthread_rwlock_wrlock(&elements);
	if (!ended)
		TX_IS(tx->destroy_ti(ti, tx_told, &gone), TI_SUCCESS);
	ended = true;
	pthread_rwlock_unlock(&elements);
}

/* ---- elements ---- */

/* With elements to be had; false: the service has ended. */
static bool begin_elements(void)
{
	bool there;

	pthread_rwlock_rdlock(&elements);
	there = !ended;
	if (!there)
		pthread_rwlock_unlock(&elements);
	return there;
}

/* Each remembers its pool. */
static ti_data_element_t *get(ti_res_pool_handle_t pool, uint32_t n)
{
	ti_pool_response_t resp;

	if (tx->res_pool_get(pool, n, chance(2) ? TRUE : FALSE, NULL, NULL, NULL, &resp))
		return NULL;
	for (ti_data_element_t *e = resp.p_element_list; e; e = e->p_next_msg)
		e->p_context = pool;
	return resp.p_element_list;
}

static void put(ti_data_element_t *list)
{
	while (list) {
		ti_data_element_t *e = list;

		list = e->p_next_msg;
		e->p_next_msg = NULL;
		(void)tx->res_pool_put(e->p_context, e);
	}
}

static void came(ti_cq_handle_t h, ti_data_element_t *list)
{
	(void)h;
	put(list);
	if (!chance(50))
		(void)tx->disconnect(pick(CONN), NULL, NULL);
	else if (!chance(1000))
		chaos_end();
}

static void served(ti_pool_response_t *resp)
{
	for (ti_data_element_t *e = resp->p_element_list; e; e = e->p_next_msg)
		e->p_context = resp->p_context1;
	put(resp->p_element_list);
}

/* ---- connections ---- */

static void broke(ti_err_rec_t *rec)
{
	(void)rec;
	if (!chance(3))
		(void)tx->disconnect(pick(CONN), NULL, NULL);
	else if (!chance(100))
		chaos_end();
}

static ti_conn_attr_t attributes(void)
{
	return (ti_conn_attr_t){.reliable = TRUE,
		.msg_flow_control = chance(2),
		.auto_cq_rearm = chance(2),
		.connect_request_timeout = 1 + chance(CHAOS_TIMEOUT_MS),
		.max_transfer_depth = 4 + chance(16),
		.max_recv_depth = 4 + chance(16)};
}

static void accept_now(ti_conn_request_t *req, bool with_receives)
{
	bool calls = chance(2);
	ti_comp_info_t comp = {.h_send_cq = chance(3) ? cq : pick(CQ),
		.pfn_send_cb = calls ? came : NULL,
		.pfn_recv_cb = calls ? came : NULL,
		.pfn_rdma_cb = calls ? came : NULL,
		.pfn_err_cb = broke};
	ti_data_element_t *list = NULL;

	comp.h_recv_cq = comp.h_send_cq;
	if (with_receives && begin_elements()) {
		list = get(pick(POOL), 1 + chance(4));
		pthread_rwlock_unlock(&elements);
	}
	(void)tx->accept(req, SIZE, &comp, list);
}

static void asked_by_other(ti_conn_request_t *req)
{
	ti_comp_info_t comp = {0};

	if (!req->status)
		(void)tx->accept(req, SIZE, &comp, NULL);
}

static void keep(const ti_conn_request_t *req)
{
	pthread_mutex_lock(&kept.lock);
	kept.req[kept.n++ % KEPT] = *req;
	pthread_mutex_unlock(&kept.lock);
}

static void asked(ti_conn_request_t *req)
{
	if (req->status)
		return;
	put_away(CONN, req->conn_handle);
	switch (chance(200)) {
	case 0:
		chaos_end();
		break;
	case 1 ... 15:
		(void)tx->reject(req);
		break;
	case 16 ... 30:
		(void)tx->disconnect(req->conn_handle, NULL, NULL);
		break;
	case 31 ... 80:
		keep(req);
		break;
	case 81 ... 85: /* nobody answers */
		break;
	default:
		accept_now(req, true);
		break;
	}
}

static void answer_later(void)
{
	ti_conn_request_t req;

	pthread_mutex_lock(&kept.lock);
	req = kept.req[chance(KEPT)];
	pthread_mutex_unlock(&kept.lock);
	if (chance(4))
		accept_now(&req, false);
	else
		(void)tx->reject(&req);
}

static void begin_conn(bool listens)
{
	ti_conn_attr_t attr = attributes();
	ti_endpoint_handle_t port = chance(6) ? ports[chance(CHAOS_PORTS)] : peers;
	ti_conn_info_t info = {.src_ep = listens ? port : any,
		.dst_ep = listens ? NULL : port,
		.pdh = chance(8) ? pd : pick(PD),
		.conn_request_cb = asked};
	ti_conn_handle_t h = NULL;

	(void)(listens ? tx->listen : tx->connect)(ti, &attr, &info, NULL, &h);
	if (!listens || !chance(4))
		put_away(CONN, h);
}

static void disconnect(void)
{
	(void)tx->disconnect(pick(CONN), NULL, NULL);
}

/* ---- acts ---- */

static void do_listen(void)
{
	begin_conn(true);
}

static void do_connect(void)
{
	begin_conn(false);
}

static void make_cq(void)
{
	ti_cq_handle_t h = NULL;

	(void)tx->create_cq(ti, pd, 1 + chance(64), &h);
	put_away(CQ, h);
}

static void make_pool(void)
{
	uint32_t sizes[2] = {SIZE, SIZE};
	ti_res_pool_handle_t h = NULL;

	(void)tx->res_pool_create(ti, chance(4) ? TI_RES_POOL_MSG : TI_RES_POOL_RDMA,
		1 + chance(32), 1 + chance(2), sizes, 0, &h);
	put_away(POOL, h);
}

static void make_mem(void)
{
	ti_mem_handle_t h = NULL;
	ti_rdma_desc_t desc;

	(void)tx->reg_virt_mem(ti, chance(4) ? pd : pick(PD), memory + chance(SIZE), SIZE,
		TI_MEM_READ_WRITE, &desc, &h);
	put_away(MEM, h);
}

static void make_domain(void)
{
	ti_endpoint_handle_t ep = NULL;
	ti_pd_handle_t h = NULL;

	if (!tx->create_endpoint(ti, &(ti_inet_addr_t){0}, 0, &ep))
		(void)tx->create_pd(ti, ep, &h);
	put_away(EP, ep);
	put_away(PD, h);
}

/* A service that ends while it connects to this one, or listens where that does. */
static void other_service(void)
{
	ti_conn_attr_t attr = attributes();
	ti_conn_info_t info = {.conn_request_cb = asked_by_other};
	ti_conn_handle_t h;
	ti_handle_t own;

	if (tx->create_ti(&own))
		return;
	info.src_ep = tx_endpoint(own, "127.0.0.1", 0);
	info.dst_ep = tx_endpoint(own, "127.0.0.1", CHAOS_PORT + chance(CHAOS_PORTS));
	(void)tx->create_pd(own, info.src_ep, &info.pdh);
	(void)tx->create_cq(own, info.pdh, 64, &info.send_cqh);
	info.recv_cqh = info.send_cqh;
	watch_service(own);
	(void)tx->connect(own, &attr, &info, NULL, &h);
	watch_conn(h);
	info.src_ep = info.dst_ep;
	(void)tx->listen(own, &attr, &info, NULL, &h);
	if (chance(2))
		usleep(chance(5000));
	atomic_fetch_add(&others, 1);
	TX_IS(tx->destroy_ti(own, tx_told, &others_gone), TI_SUCCESS);
}

static void destroy_any(void)
{
	switch ((enum kind)chance(KINDS)) {
	case CQ:
		(void)tx->destroy_cq(pick(CQ));
		break;
	case POOL:
		(void)tx->res_pool_destroy(pick(POOL));
		break;
	case MEM:
		(void)tx->dereg_mem(pick(MEM));
		break;
	case EP:
		(void)tx->destroy_endpoint(pick(EP));
		break;
	case PD:
		(void)tx->destroy_pd(pick(PD));
		break;
	default:
		disconnect();
		break;
	}
}

static ti_status_t post(ti_conn_handle_t h, ti_data_element_t *m)
{
	static ti_rdma_desc_t nowhere = {4096, 1};

	switch (chance(12)) {
	case 0:
		(void)ti_rdma_set_remote(m, &nowhere);
		return tx->rdma_write(h, m);
	case 1:
		(void)ti_rdma_set_remote(m, &nowhere);
		return tx->rdma_read(h, m);
	case 2 ... 6:
		return tx->msg_recv(h, m);
	default:
		m->msg_opt = TI_OPT_SIGNALED;
		return tx->msg_send(h, m);
	}
}

static void transfer(void)
{
	ti_data_element_t *m;

	if (!begin_elements())
		return;
	m = get(pick(POOL), 1);
	if (m && post(pick(CONN), m))
		put(m);
	pthread_rwlock_unlock(&elements);
}

static void poll_any(void)
{
	ti_cq_handle_t h = chance(2) ? cq : pick(CQ);
	ti_data_element_t *list;

	if (!begin_elements())
		return;
	if (!tx->poll_cq(h, &list))
		put(list);
	(void)tx->rearm_cq(h);
	pthread_rwlock_unlock(&elements);
}

static void get_later(void)
{
	ti_res_pool_handle_t pool = pick(POOL);

	if (!begin_elements())
		return;
	(void)tx->res_pool_get(pool, 1 + chance(16), TRUE, served, pool, NULL, NULL);
	pthread_rwlock_unlock(&elements);
}

static void ask_profile(void)
{
	ti_conn_profile_t profile = {.conn = pick(CONN)};
	uint32_t bytes = sizeof profile;

	(void)tx->io_ctl(ti, TI_GET_CONN_PROFILE, &bytes, &profile);
}

static void hear(const ti_event_t event, const void *data, const void *context)
{
	(void)event, (void)data, (void)context;
}

static void hear_events(void)
{
	void *context = (void *)(uintptr_t)chance(SLOTS);

	(void)(chance(2) ? tx->events_register : tx->events_deregister)(context, hear);
}

static const struct {
	unsigned weight;
	void (*act)(void);
} acts[] = {
	{3, do_listen},
	{14, do_connect},
	{3, disconnect},
	{8, answer_later},
	{4, make_cq},
	{4, make_pool},
	{4, make_mem},
	{2, make_domain},
	{6, destroy_any},
	{80, transfer},
	{10, poll_any},
	{5, get_later},
	{3, ask_profile},
	{3, hear_events},
	{2, other_service},
};

void chaos_act(void)
{
	unsigned all = 0, n;

	for (unsigned i = 0; i < sizeof acts / sizeof *acts; i++)
		all += acts[i].weight;
	n = chance(all);
	for (unsigned i = 0;; n -= acts[i++].weight)
		if (n < acts[i].weight) {
			acts[i].act();
			return;
		}
}

/* ---- the beginning ---- */

void chaos_begin(void)
{
	static struct tx_world w;

	gone = others_gone = (struct tx_count)TX_COUNT;
	others = 0;
	ended = false;
	memset(slots, 0, sizeof slots);
	memset(kept.req, 0, sizeof kept.req);
	tx_begin(&w);
	ti = w.ti;
	pd = w.pd;
	any = w.any;
	cq = tx_cq(&w, 4096);
	for (int i = 0; i < CHAOS_PORTS; i++)
		ports[i] = tx_endpoint(ti, "127.0.0.1", CHAOS_PORT + i);
	peers = tx_endpoint(ti, "127.0.0.1", CHAOS_PEER_PORT);
	slots[POOL][0] = w.pool;
	for (int i = 0; i < SLOTS; i++)
		make_pool();
	for (int i = 0; i < 2 * CHAOS_PORTS; i++)
		do_listen();
	watch_service(ti);
}

void chaos_await_end(void)
{
	while (tx_now(&gone) < 1 || tx_now(&others_gone) < others)
		usleep(1000);
	TX_IS(tx->debug_svc(ti, TI_DBG_STD), TI_INVALID_HANDLE);
	for (uintptr_t i = 0; i < SLOTS; i++)
		while (!tx->events_deregister((void *)i, hear))
			;
}
