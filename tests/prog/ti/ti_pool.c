// SPDX-License-Identifier: BSD-3-Clause
/* Resource pools: memory, partial and asynchronous gets in order, what is refused, the end. */
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

enum { COUNT = 8, CONTEXT = 24, MOST = 32 /* buffers of an element */ };

static ti_res_pool_handle_t make(struct tx_world *w, ti_res_pool_type_t type, uint32_t count)
{
	uint32_t sizes[3] = {100, 0, 4096};
	ti_res_pool_handle_t pool = NULL;

	TX_IS(tx->res_pool_create(w->ti, type, count, 3, sizes, CONTEXT, &pool), TI_SUCCESS);
	return pool;
}

/* ---- what elements have ---- */

static void check_context(const ti_data_element_t *e)
{
	static const char zeros[CONTEXT];

	CHECK(e->p_context && !memcmp(e->p_context, zeros, CONTEXT));
}

static void elements(struct tx_world *w)
{
	ti_res_pool_handle_t pool = make(w, TI_RES_POOL_MSG, COUNT);
	ti_data_element_t *list = tx_get(pool, COUNT);
	char *low = NULL, *high = NULL;
	int n = 0;

	check_case("elements");
	for (ti_data_element_t *e = list; e; e = e->p_next_msg, n++) {
		ti_local_data_desc_t *d = e->local_data_desc;
		char *at = d[0].vaddr;

		CHECK_EQ(e->num_io_bufs, 3);
		CHECK_EQ(e->pool_type, TI_RES_POOL_MSG);
		CHECK_EQ(d[0].byte_count, 100);
		CHECK(!d[1].vaddr && !d[1].byte_count);
		CHECK_EQ(d[2].byte_count, 4096);
		CHECK_EQ((uintptr_t)at % 64, 0);
		CHECK(d[0].lkey); /* there is but one PD */
		memset(d[0].vaddr, 1, 100);
		memset(d[2].vaddr, 2, 4096);
		check_context(e);
		low = !low || at < low ? at : low;
		high = at > high ? at : high;
	}
	CHECK_EQ(n, COUNT);
	CHECK_EQ(high - low, (COUNT - 1) * (128 + 4096)); /* one allocation */
	list->local_data_desc[0].byte_count = 5;
	tx_put(pool, list);
	list = tx_get(pool, COUNT);
	for (ti_data_element_t *e = list; e; e = e->p_next_msg)
		CHECK_EQ(e->local_data_desc[0].byte_count, 100);
	tx_put(pool, list);
	TX_IS(tx->res_pool_destroy(pool), TI_SUCCESS);
	TX_IS(tx->res_pool_destroy(pool), TI_INVALID_HANDLE);
}

static void without_context(struct tx_world *w)
{
	uint32_t size = 0;
	ti_res_pool_handle_t pool;
	ti_data_element_t *e;

	check_case("without context");
	TX_IS(tx->res_pool_create(w->ti, TI_RES_POOL_RDMA, 1, 1, &size, 0, &pool), TI_SUCCESS);
	e = tx_get(pool, 1);
	CHECK(!e->p_context);
	CHECK_EQ(e->pool_type, TI_RES_POOL_RDMA);
	CHECK(!e->rdma_data_desc->vaddr);
	e->p_context = &size; /* may be data itself, and stays */
	tx_put(pool, e);
	CHECK(tx_get(pool, 1)->p_context == &size);
	TX_IS(tx->res_pool_destroy(pool), TI_RESOURCE_BUSY);
	tx_put(pool, e);
	TX_IS(tx->res_pool_destroy(pool), TI_SUCCESS);
}

/* ---- at once ---- */

static void synchronous(struct tx_world *w)
{
	ti_res_pool_handle_t pool = make(w, TI_RES_POOL_MSG, COUNT);
	ti_pool_response_t r;
	ti_data_element_t *list;
	int x, y;

	check_case("synchronous");
	TX_IS(tx->res_pool_get(pool, COUNT + 1, FALSE, NULL, &x, &y, &r),
		TI_INSUFFICIENT_RESOURCES);
	TX_IS(r.status, TI_ERROR);
	CHECK(!r.p_element_list && !r.element_count);
	TX_IS(tx->res_pool_get(pool, COUNT + 1, TRUE, NULL, &x, &y, &r), TI_SUCCESS);
	CHECK_EQ(r.element_count, COUNT);
	CHECK(r.p_context1 == &x && r.p_context2 == &y);
	TX_IS(r.status, TI_SUCCESS);
	list = r.p_element_list;
	TX_IS(tx->res_pool_get(pool, 1, TRUE, NULL, &x, &y, &r), TI_INSUFFICIENT_RESOURCES);
	tx_put(pool, list);
	TX_IS(tx->res_pool_destroy(pool), TI_SUCCESS);
}

/* ---- by callback ---- */

struct asked {
	int number;
	ti_res_pool_handle_t pool;
	ti_data_element_t *got;
	unsigned n, calls;
};

static int order[8], orders;

static void came(ti_pool_response_t *r)
{
	struct asked *a = r->p_context1;
	ti_data_element_t **end = &a->got;

	TX_IS(r->status, TI_SUCCESS);
	CHECK(r->p_context2 == a->pool);
	while (*end)
		end = &(*end)->p_next_msg;
	*end = r->p_element_list;
	a->n += r->element_count;
	a->calls++;
	order[orders++] = a->number;
}

static void asynchronous(struct tx_world *w)
{
	ti_res_pool_handle_t pool = make(w, TI_RES_POOL_MSG, COUNT);
	struct asked a = {1, pool, NULL, 0, 0}, b = {2, pool, NULL, 0, 0},
		     c = {3, pool, NULL, 0, 0};
	ti_pool_response_t r;
	ti_data_element_t *held;

	check_case("asynchronous");
	TX_IS(tx->res_pool_get(pool, 2, FALSE, came, &a, pool, NULL), TI_SUCCESS);
	CHECK_EQ(a.n, 2);
	held = tx_get(pool, 3);
	/* 3 are left: b gets them and waits for 2; c waits behind it */
	TX_IS(tx->res_pool_get(pool, 5, TRUE, came, &b, pool, NULL), TI_PENDING);
	CHECK_EQ(b.n, 3);
	TX_IS(tx->res_pool_get(pool, 1, FALSE, came, &c, pool, NULL), TI_PENDING);
	TX_IS(tx->res_pool_get(pool, 1, TRUE, NULL, NULL, NULL, &r), TI_INSUFFICIENT_RESOURCES);
	TX_IS(tx->res_pool_destroy(pool), TI_RESOURCE_BUSY);
	tx_put(pool, held); /* 3: two for b, one for c */
	CHECK_EQ(b.n, 5);
	CHECK_EQ(b.calls, 2);
	CHECK_EQ(c.n, 1);
	CHECK(orders == 4 && order[0] == 1 && order[1] == 2 && order[2] == 2 && order[3] == 3);
	tx_put(pool, a.got);
	tx_put(pool, b.got);
	tx_put(pool, c.got);
	TX_IS(tx->res_pool_destroy(pool), TI_SUCCESS);
}

/* Elements are free, but fewer than the first one in the queue waits for: nobody overtakes it. */
static void overtaking(struct tx_world *w)
{
	ti_res_pool_handle_t pool = make(w, TI_RES_POOL_MSG, COUNT);
	struct asked a = {1, pool, NULL, 0, 0}, b = {2, pool, NULL, 0, 0};
	ti_data_element_t *held = tx_get(pool, COUNT - 3), *one = tx_get(pool, 1);
	ti_pool_response_t r;

	check_case("overtaking");
	orders = 0;
	TX_IS(tx->res_pool_get(pool, 3, FALSE, came, &a, pool, NULL), TI_PENDING);
	for (int partial = 0; partial < 2; partial++) {
		TX_IS(tx->res_pool_get(pool, 1, partial, NULL, NULL, NULL, &r),
			TI_INSUFFICIENT_RESOURCES);
		CHECK(!r.p_element_list && !r.element_count);
	}
	TX_IS(tx->res_pool_get(pool, 1, TRUE, came, &b, pool, NULL), TI_PENDING);
	CHECK_EQ(a.n + b.n, 0);
	tx_put(pool, one);
	CHECK_EQ(a.n, 3);
	CHECK_EQ(b.n, 0);
	tx_put(pool, held);
	CHECK_EQ(b.n, 1);
	CHECK(orders == 2 && order[0] == 1 && order[1] == 2);
	tx_put(pool, tx_get(pool, 1)); /* nobody waits any more */
	tx_put(pool, a.got);
	tx_put(pool, b.got);
	TX_IS(tx->res_pool_destroy(pool), TI_SUCCESS);
}

/* A callback that puts what it got serves the next one. */
static void puts_again(ti_pool_response_t *r)
{
	tx_add(r->p_context1, 1);
	tx_put(r->p_context2, r->p_element_list);
}

static void chained(struct tx_world *w)
{
	ti_res_pool_handle_t pool = make(w, TI_RES_POOL_MSG, 1);
	ti_data_element_t *held = tx_get(pool, 1);
	struct tx_count n = TX_COUNT;

	check_case("chained");
	for (int i = 0; i < 5; i++)
		TX_IS(tx->res_pool_get(pool, 1, FALSE, puts_again, &n, pool, NULL), TI_PENDING);
	tx_put(pool, held);
	CHECK_EQ(tx_now(&n), 5);
	TX_IS(tx->res_pool_destroy(pool), TI_SUCCESS);
}

/* One that asks for the next one, as often as it is told to. */
struct eager {
	ti_res_pool_handle_t pool;
	int left, got;
};

static void asks_again(ti_pool_response_t *r)
{
	struct eager *e = r->p_context1;

	e->got += r->element_count;
	if (e->left-- > 0)
		TX_IS(tx->res_pool_get(e->pool, 1, FALSE, asks_again, e, NULL, NULL), TI_PENDING);
}

/* The first request was served at once, whatever its callback asked for since. */
static void asked_again(struct tx_world *w)
{
	ti_res_pool_handle_t pool = make(w, TI_RES_POOL_MSG, 2);
	struct eager e = {pool, 2, 0};

	check_case("asked again");
	TX_IS(tx->res_pool_get(pool, 1, FALSE, asks_again, &e, NULL, NULL), TI_SUCCESS);
	CHECK_EQ(e.got, 2); /* the third one waits, and destroy_ti() takes all */
}

/* ---- destroyed while requests wait ---- */

static struct tx_count inside, go_on;

static void waits_inside(ti_pool_response_t *r)
{
	CHECK(r->p_element_list != NULL);
	tx_add(&inside, 1);
	tx_await(&go_on, 1);
	r->p_element_list->status = TI_SUCCESS; /* its memory is there until it returns */
}

static void never_served(ti_pool_response_t *r)
{
	(void)r;
	CHECK(!"a callback after the end of its service");
}

static void *put_later(void *arg);

/* The first one is in its callback, the second one would be next, when the service ends. */
static void ended(void)
{
	struct tx_world w;
	void *what[2];
	pthread_t thread;

	check_case("ended while requests wait");
	tx_begin(&w);
	inside = go_on = (struct tx_count)TX_COUNT;
	what[0] = w.pool;
	what[1] = tx_get(w.pool, TX_POOL);
	TX_IS(tx->res_pool_get(w.pool, 1, FALSE, waits_inside, NULL, NULL, NULL), TI_PENDING);
	TX_IS(tx->res_pool_get(w.pool, 1, FALSE, never_served, NULL, NULL, NULL), TI_PENDING);
	CHECK(!pthread_create(&thread, NULL, put_later, what));
	tx_await(&inside, 1);
	tx_end(&w);
	tx_add(&go_on, 1);
	CHECK(!pthread_join(thread, NULL));
}

/* ---- waiting, by a switch ---- */

static void *put_later(void *arg)
{
	void **what = arg;

	tx_put(what[0], what[1]);
	return NULL;
}

static void blocking(struct tx_world *w)
{
	ti_res_pool_handle_t pool = make(w, TI_RES_POOL_MSG, 1);
	uint32_t on = 1, bytes = sizeof on;
	void *what[2] = {pool, tx_get(pool, 1)};
	ti_pool_response_t r;
	pthread_t thread;

	check_case("blocking");
	TX_IS(tx->io_ctl(w->ti, TI_SET_BLOCKING_GET, &bytes, &on), TI_SUCCESS);
	pthread_create(&thread, NULL, put_later, what);
	TX_IS(tx->res_pool_get(pool, 1, FALSE, NULL, NULL, NULL, &r), TI_SUCCESS);
	pthread_join(thread, NULL);
	CHECK(r.p_element_list == what[1]);
	/* With partial, one that wants more than there are waits, too. */
	pthread_create(&thread, NULL, put_later, what);
	TX_IS(tx->res_pool_get(pool, 2, TRUE, NULL, NULL, NULL, &r), TI_SUCCESS);
	pthread_join(thread, NULL);
	CHECK(r.p_element_list == what[1] && r.element_count == 1);
	TX_IS(tx->res_pool_get(pool, 2, FALSE, NULL, NULL, NULL, &r), TI_INSUFFICIENT_RESOURCES);
	r.p_element_list = what[1];
	on = 0;
	TX_IS(tx->io_ctl(w->ti, TI_SET_BLOCKING_GET, &bytes, &on), TI_SUCCESS);
	tx_put(pool, r.p_element_list);
	TX_IS(tx->res_pool_destroy(pool), TI_SUCCESS);
}

/* ---- destroyed beside gets ---- */

static _Atomic(ti_res_pool_handle_t) shared_pool;

/* An element that it got is its own until it is put: destroying is refused meanwhile. */
static void *use_shared(void *arg)
{
	ti_res_pool_handle_t pool;
	ti_pool_response_t r;

	(void)arg;
	while ((pool = atomic_load(&shared_pool)) != NULL) {
		if (tx->res_pool_get(pool, 1, FALSE, NULL, NULL, NULL, &r) != TI_SUCCESS)
			continue; /* destroyed a moment ago */
		memset(r.p_element_list->local_data_desc[2].vaddr, 3, 4096);
		TX_IS(tx->res_pool_put(pool, r.p_element_list), TI_SUCCESS);
	}
	return NULL;
}

static void destroyed(struct tx_world *w)
{
	ti_res_pool_handle_t pool = make(w, TI_RES_POOL_MSG, 1), next;
	pthread_t thread;
	ti_status_t st;

	check_case("destroyed beside gets");
	atomic_store(&shared_pool, pool);
	CHECK(!pthread_create(&thread, NULL, use_shared, NULL));
	for (int i = 0; i < 300; i++, pool = next) {
		next = i < 299 ? make(w, TI_RES_POOL_MSG, 1) : NULL;
		while ((st = tx->res_pool_destroy(pool)) == TI_RESOURCE_BUSY)
			;
		TX_IS(st, TI_SUCCESS);
		atomic_store(&shared_pool, next);
	}
	CHECK(!pthread_join(thread, NULL));
}

static _Atomic(ti_res_pool_handle_t) shared_targets;

static void *use_targets(void *arg)
{
	ti_res_pool_handle_t pool;

	(void)arg;
	while ((pool = atomic_load(&shared_targets)) != NULL)
		tx_put(pool, tx_get(pool, 1));
	return NULL;
}

/* Pools show keys of whichever domain is there. */
static void beside_domains(struct tx_world *w)
{
	ti_res_pool_handle_t pool = make(w, TI_RES_POOL_RDMA, 1);
	ti_data_element_t *e;
	pthread_t thread;

	check_case("domains come and go beside gets");
	atomic_store(&shared_targets, pool);
	CHECK(!pthread_create(&thread, NULL, use_targets, NULL));
	for (int i = 0; i < 300; i++) {
		TX_IS(tx->destroy_pd(w->pd), TI_SUCCESS);
		TX_IS(tx->create_pd(w->ti, w->ep, &w->pd), TI_SUCCESS);
	}
	atomic_store(&shared_targets, NULL);
	CHECK(!pthread_join(thread, NULL));
	e = tx_get(pool, 1);
	CHECK(e->rdma_data_desc[0].rkey);
	tx_put(pool, e);
	TX_IS(tx->res_pool_destroy(pool), TI_SUCCESS);
}

/* ---- what is refused ---- */

static void refused(struct tx_world *w)
{
	ti_res_pool_handle_t pool = make(w, TI_RES_POOL_MSG, COUNT),
			     other = make(w, TI_RES_POOL_MSG, 1);
	ti_data_element_t *mine = tx_get(pool, 2), *foreign = tx_get(other, 1), fake;
	uint32_t size = 8, sizes[MOST] = {8}, *nowhere = (uint32_t *)8;
	ti_pool_response_t r;

	check_case("refused");
	TX_IS(tx->res_pool_create(NULL, 0, 1, 1, &size, 0, &pool), TI_INVALID_HANDLE);
	CHECK(!pool);
	TX_IS(tx->res_pool_create(w->ti, 0, 0, 1, &size, 0, &pool), TI_INVALID_PARAMETER);
	TX_IS(tx->res_pool_create(w->ti, 0, 1, 0, &size, 0, &pool), TI_INVALID_PARAMETER);
	TX_IS(tx->res_pool_create(w->ti, 0, 1, 1, NULL, 0, &pool), TI_INVALID_PARAMETER);
	TX_IS(tx->res_pool_create(w->ti, 7, 1, 1, &size, 0, &pool), TI_INVALID_PARAMETER);
	TX_IS(tx->res_pool_create(w->ti, 0, 1, 1, &size, 0, NULL), TI_INVALID_PARAMETER);
	size = UINT32_MAX;
	TX_IS(tx->res_pool_create(w->ti, 0, UINT32_MAX, 1, &size, 0, &pool),
		TI_INSUFFICIENT_RESOURCES);
	for (uint32_t n = MOST + 1; n; n = n > UINT32_MAX / 2 ? 0 : n * 2) /* no size is read */
		TX_IS(tx->res_pool_create(w->ti, 0, 1, n, nowhere, 0, &pool), TI_INVALID_PARAMETER);
	TX_IS(tx->res_pool_create(w->ti, 0, 1, UINT32_MAX, nowhere, 0, &pool),
		TI_INVALID_PARAMETER);
	TX_IS(tx->res_pool_create(w->ti, 0, 1, MOST, sizes, 0, &pool), TI_SUCCESS);
	TX_IS(tx->res_pool_destroy(pool), TI_SUCCESS);
	TX_IS(tx->res_pool_get(NULL, 1, FALSE, NULL, NULL, NULL, &r), TI_INVALID_HANDLE);
	TX_IS(tx->res_pool_get(other, 1, FALSE, NULL, NULL, NULL, NULL), TI_INVALID_SETTING);
	TX_IS(tx->res_pool_get(other, 1, FALSE, came, NULL, NULL, &r), TI_INVALID_SETTING);
	TX_IS(tx->res_pool_get(other, 0, FALSE, NULL, NULL, NULL, &r), TI_INVALID_SETTING);
	TX_IS(tx->res_pool_put(other, NULL), TI_INVALID_PARAMETER);
	TX_IS(tx->res_pool_put(other, mine), TI_INVALID_PARAMETER);
	foreign->p_next_msg = mine; /* none of them is put */
	TX_IS(tx->res_pool_put(other, foreign), TI_INVALID_PARAMETER);
	foreign->p_next_msg = foreign; /* nor one twice */
	TX_IS(tx->res_pool_put(other, foreign), TI_INVALID_PARAMETER);
	foreign->p_next_msg = NULL;
	fake = *foreign;
	TX_IS(tx->res_pool_put(other, &fake), TI_INVALID_PARAMETER);
	tx_put(other, foreign);
	TX_IS(tx->res_pool_put(other, foreign), TI_INVALID_PARAMETER);
	TX_IS(tx->res_pool_destroy(other), TI_SUCCESS);
	TX_IS(tx->res_pool_put(other, foreign), TI_INVALID_HANDLE);
	TX_IS(tx->res_pool_get(other, 1, FALSE, NULL, NULL, NULL, &r), TI_INVALID_HANDLE);
	TX_IS(tx->res_pool_destroy((ti_res_pool_handle_t)w->ti), TI_INVALID_HANDLE);
}

int main(void)
{
	struct tx_world w;

	tx_begin(&w);
	elements(&w);
	without_context(&w);
	synchronous(&w);
	asynchronous(&w);
	overtaking(&w);
	chained(&w);
	asked_again(&w);
	blocking(&w);
	destroyed(&w);
	beside_domains(&w);
	refused(&w); /* and destroy_ti() takes what is out */
	tx_end(&w);
	ended();
	return check_result();
}
