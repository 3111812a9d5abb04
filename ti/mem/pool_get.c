// SPDX-License-Identifier: BSD-3-Clause
/* Elements out of pools and back, and who waits for them. */
#include "ti/mem/pool_get.h"

#include <stdlib.h>

#include "base/futex.h"
#include "ti/core/fork.h"
#include "ti/mem/pool.h"

/* Takes n elements off the free list.  Under the lock; there are so many. */
static ti_data_element_t *take(struct pool *pool, uint32_t n)
{
	ti_data_element_t *first = pool->free, *last = NULL;

	for (uint32_t i = 0; i < n; i++) {
		struct element *el = (struct element *)pool->free;

		last = &el->e;
		pool->free = el->e.p_next_msg;
		pool_reset_element(pool, el);
		atomic_store_explicit(&el->state, ELEMENT_OUT, memory_order_relaxed);
	}
	pool->n_free -= n;
	last->p_next_msg = NULL;
	return first;
}

/* Whether to wait for so many can be of use. */
static bool can_ever(const struct pool *pool, uint32_t n, bool partial)
{
	return partial || n <= pool->count;
}

/* ---- at once ---- */

/* Under the lock; false: not enough, or others wait. */
static bool try_get(struct pool *pool, uint32_t n, bool partial, ti_pool_response_t *resp)
{
	uint32_t have = pool->n_free < n ? pool->n_free : n;

	if (!have || pool->waits || pool->serving || (have < n && !partial))
		return false;
	resp->p_element_list = take(pool, have);
	resp->element_count = have;
	resp->status = TI_SUCCESS;
	return true;
}

/* Those in blocking gets look again.  Under the lock. */
static void wake_sleepers(struct pool *pool)
{
	if (!pool->sleepers)
		return;
	atomic_fetch_add_explicit(&pool->puts, 1, memory_order_relaxed);
	futex_wake_shared(&pool->puts);
}

/* Until there are enough; false: the pool was destroyed meanwhile.  With a reference. */
static bool get_blocking(struct pool *pool, uint32_t n, bool partial, ti_pool_response_t *resp)
{
	bool ok = false;

	object_relock(&pool->m.obj);
	while (object_is_open(&pool->m.obj) && !(ok = try_get(pool, n, partial, resp))) {
		uint32_t puts = atomic_load_explicit(&pool->puts, memory_order_relaxed);

		pool->sleepers++;
		pool_unlock(pool);
		futex_wait_shared(&pool->puts, puts, 100 * (uint64_t)NSEC_PER_MSEC);
		object_relock(&pool->m.obj);
		pool->sleepers--;
	}
	pool_unlock(pool);
	return ok;
}

/* Drops the lock. */
static ti_status_t get_sync(struct pool *pool, uint32_t n, bool partial, ti_pool_response_t *resp)
{
	bool ok = try_get(pool, n, partial, resp);

	if (!ok && can_ever(pool, n, partial) && service_has(pool->m.ti, TI_BLOCKING_GET)) {
		object_hold(&pool->m.obj);
		pool_unlock(pool);
		ok = !system_block() && get_blocking(pool, n, partial, resp);
		system_unblock();
		object_put(&pool->m.obj);
	} else {
		pool_unlock(pool);
	}
	if (ok)
		return TI_SUCCESS;
	resp->p_element_list = NULL;
	resp->element_count = 0;
	resp->status = TI_ERROR;
	return TI_INSUFFICIENT_RESOURCES;
}

void pool_halt(struct pool *pool)
{
	object_relock(&pool->m.obj);
	wake_sleepers(pool);
	pool_unlock(pool);
}

/* ---- by callback ---- */

/* What the first one that waits gets now, if anything; NULL.  Under the lock. */
static struct pool_wait *serve_first(struct pool *pool, ti_pool_response_t *resp)
{
	struct pool_wait *w = pool->waits;
	uint32_t n;

	if (!w || !pool->n_free || (pool->n_free < w->missing && !w->partial))
		return NULL;
	n = pool->n_free < w->missing ? pool->n_free : w->missing;
	*resp = (ti_pool_response_t){w->context1, w->context2, take(pool, n), n, TI_SUCCESS};
	w->missing -= n;
	if (!w->missing) {
		pool->waits = w->next;
		if (!pool->waits)
			pool->waits_end = &pool->waits;
	}
	return w;
}

/*
 * Calls back in order; one thread at a time, since a callback may put elements.  Not once the
 * pool's service has ended.  Under the lock, which it drops meanwhile, with a reference.
 */
static void serve(struct pool *pool)
{
	ti_pool_response_t resp;
	unsigned forks = fork_count();
	struct pool_wait *w;

	if (pool->serving)
		return;
	pool->serving = true;
	while (object_is_open(&pool->m.obj) && (w = serve_first(pool, &resp)) != NULL) {
		ti_res_pool_cb_t cb = w->cb;
		bool done = !w->missing;

		pool_unlock(pool);
		cb(&resp);
		if (forks != fork_count())
			return; /* in a child the pool is the parent's */
		if (done)
			free(w);
		object_relock(&pool->m.obj);
	}
	pool->serving = false;
}

/* What waits is known by its number: memory is used again.  Under the lock. */
static bool waits_still(const struct pool *pool, uint64_t number)
{
	const struct pool_wait *at = pool->waits;

	while (at && at->number != number)
		at = at->next;
	return at;
}

/* Drops the lock. */
static ti_status_t get_async(struct pool *pool, uint32_t n, bool partial, ti_res_pool_cb_t cb,
	void *context1, void *context2)
{
	struct pool_wait *w = malloc(sizeof *w);
	uint64_t number;
	bool waits;

	if (!w) {
		pool_unlock(pool);
		return TI_INSUFFICIENT_RESOURCES;
	}
	object_hold(&pool->m.obj);
	number = ++pool->last_number;
	*w = (struct pool_wait){NULL, number, cb, context1, context2, n, partial};
	*pool->waits_end = w;
	pool->waits_end = &w->next;
	serve(pool);
	waits = waits_still(pool, number);
	pool_unlock(pool);
	object_put(&pool->m.obj);
	return waits ? TI_PENDING : TI_SUCCESS;
}

/* Keys that a peer is told: nothing that is posted here would register the buffers. */
static bool lacks_keys(struct pool *pool)
{
	return pool->type == TI_RES_POOL_RDMA && pool->buffers && !pool_any_reg(pool);
}

/* Locked once more, with those keys where they can be had; NULL: it was destroyed meanwhile. */
static struct pool *show_keys(struct pool *pool, ti_res_pool_handle_t h_pool)
{
	object_hold(&pool->m.obj);
	pool_unlock(pool);
	pool_register_early(pool);
	object_put(&pool->m.obj);
	return pool_lock(h_pool);
}

ti_status_t op_res_pool_get(ti_res_pool_handle_t h_pool, uint32_t element_count,
	boolean_t partial_allocation_OK, ti_res_pool_cb_t res_cb, void *p_context1,
	void *p_context2, ti_pool_response_t *p_res_pool_resp)
{
	struct pool *pool = pool_lock(h_pool);

	if (pool && lacks_keys(pool))
		pool = show_keys(pool, h_pool);
	if (!pool)
		return TI_INVALID_HANDLE;
	if (!res_cb == !p_res_pool_resp || !element_count) {
		pool_unlock(pool);
		return TI_INVALID_SETTING;
	}
	if (!res_cb) {
		p_res_pool_resp->p_context1 = p_context1;
		p_res_pool_resp->p_context2 = p_context2;
		return get_sync(pool, element_count, partial_allocation_OK, p_res_pool_resp);
	}
	/* one that can never be served would block all behind it */
	if (!can_ever(pool, element_count, partial_allocation_OK)) {
		pool_unlock(pool);
		return TI_INSUFFICIENT_RESOURCES;
	}
	return get_async(
		pool, element_count, partial_allocation_OK, res_cb, p_context1, p_context2);
}

/* ---- back ---- */

/* From the program into the pool; false: it is not one that is out. */
static bool take_back(struct pool *pool, struct element *el)
{
	uint32_t out = ELEMENT_OUT;

	return el && el->pool == pool &&
	       atomic_compare_exchange_strong_explicit(
		       &el->state, &out, ELEMENT_FREE, memory_order_relaxed, memory_order_relaxed);
}

/* All or none.  Under the lock. */
static bool put_list(struct pool *pool, ti_data_element_t *list)
{
	ti_data_element_t *at, *last = NULL;
	uint32_t n = 0;

	for (at = list; at; at = at->p_next_msg, n++) {
		if (!take_back(pool, element_of(at)))
			break;
		last = at;
	}
	if (at) {
		for (ti_data_element_t *undo = list; n > 0; n--, undo = undo->p_next_msg)
			element_unclaim((struct element *)undo);
		return false;
	}
	last->p_next_msg = pool->free;
	pool->free = list;
	pool->n_free += n;
	return true;
}

/* Those that wait, by callback or asleep.  Under the lock, which it drops. */
static void serve_waiting(struct pool *pool)
{
	object_hold(&pool->m.obj);
	if (pool->waits)
		serve(pool);
	wake_sleepers(pool);
	pool_unlock(pool);
	object_put(&pool->m.obj);
}

ti_status_t op_res_pool_put(ti_res_pool_handle_t h_pool, ti_data_element_t *p_delist)
{
	struct pool *pool = pool_lock(h_pool);
	bool ok;

	if (!pool)
		return TI_INVALID_HANDLE;
	ok = p_delist && put_list(pool, p_delist);
	if (ok && (pool->waits || pool->sleepers))
		serve_waiting(pool);
	else
		pool_unlock(pool);
	return ok ? TI_SUCCESS : TI_INVALID_PARAMETER;
}
