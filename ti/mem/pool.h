/* SPDX-License-Identifier: BSD-3-Clause */
/* Resource pools. */
#pragma once

#include "ti/dev/pd.h"
#include "ti/mem/element.h"

/* A request of res_pool_get() with a callback that waits. */
struct pool_wait {
	struct pool_wait *next;
	uint64_t number;
	ti_res_pool_cb_t cb;
	void *context1, *context2;
	uint32_t missing;
	bool partial;
};

/*
 * The pool's buffers in one PD.  Read without a lock, so it stays in its pool's list when the PD is
 * destroyed, and is used anew; written under the service's lock guests.
 */
struct pool_reg {
	struct pd_guest guest; /* first */
	_Atomic(struct pool_reg *) next;
	_Atomic(struct pd *) pd; /* NULL: to be used anew */
	_Atomic uint32_t lkey, rkey;
	struct ibv_mr *mr;
};

struct pool {
	struct member m;
	ti_res_pool_type_t type;
	uint32_t count, bufs, context_size;
	size_t stride;      /* of an element with what belongs to it */
	uint32_t *buf_size; /* of each buffer; 0: the program's */
	char *elements;     /* count * stride bytes */
	char *buffers;      /* all of them; NULL: none */
	size_t buffers_len, buffers_each;
	_Atomic(struct pool_reg *) regs;

	/* Under the object's lock. */
	ti_data_element_t *free;
	uint32_t n_free;
	struct pool_wait *waits, **waits_end;
	uint64_t last_number;  /* of those */
	bool serving;          /* a thread calls back those that wait */
	uint32_t sleepers;     /* in blocking gets */
	_Atomic uint32_t puts; /* they sleep on it */
};

/* The pool with its object's lock, or NULL. */
static inline struct pool *pool_lock(ti_res_pool_handle_t h_pool)
{
	return object_lock(h_pool, HANDLE_POOL);
}

static inline void pool_unlock(struct pool *pool)
{
	object_unlock(&pool->m.obj);
}

/* The key of a buffer of the pool's own, addr; registers the buffers in pd if need be.  False: it
 * is not in a buffer of the pool's, or *key could not be made (*st). */
bool pool_lkey(struct pool *pool, struct pd *pd, const void *addr, uint32_t *key, ti_status_t *st);

/* Is that range in the pool's own buffers? */
static inline bool pool_owns(const struct pool *pool, const void *addr, uint64_t len)
{
	uintptr_t at = (uintptr_t)addr - (uintptr_t)pool->buffers;

	return pool->buffers && at < pool->buffers_len && len <= pool->buffers_len - at;
}

/*
 * The pool of ti's whose element e would be, with a reference; NULL: there is none.  Does not touch
 * e, which may be anything.
 */
struct pool *pool_with(struct service *ti, const ti_data_element_t *e);

/* Has it as many descriptors as it says?  Where they are the program's own, that is believed. */
static inline bool pool_has_descs(const struct element *el)
{
	return el->e.num_io_bufs <= el->pool->bufs || (const void *)el->e.local_data_desc != el + 1;
}

/* One of the registrations that it has; NULL. */
static inline struct pool_reg *pool_any_reg(struct pool *pool)
{
	struct pool_reg *reg = atomic_load_explicit(&pool->regs, memory_order_acquire);

	while (reg && !atomic_load_explicit(&reg->pd, memory_order_acquire))
		reg = atomic_load_explicit(&reg->next, memory_order_acquire);
	return reg;
}

/*
 * Registers the pool's buffers in its service's PD, if there is but one: then elements show their
 * keys.
 */
void pool_register_early(struct pool *pool);

/* Sets the element's buffers to what the pool has for it. */
void pool_reset_element(struct pool *pool, struct element *el);

ti_status_t op_res_pool_create(ti_handle_t h_ti, ti_res_pool_type_t pool_type, uint32_t element_cnt,
	uint32_t bufs_per_element, uint32_t *buf_size_array, uint32_t context_size,
	ti_res_pool_handle_t *ph_pool);
ti_status_t op_res_pool_destroy(ti_res_pool_handle_t h_pool);
