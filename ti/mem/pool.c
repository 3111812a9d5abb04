// SPDX-License-Identifier: BSD-3-Clause
/* Pools as a whole: memory, registration, the end. */
#include "ti/mem/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ti/core/trace.h"
#include "ti/mem/mem.h"

enum { ALIGN = 64 }; /* a cache line */

static size_t aligned(size_t n)
{
	return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

/* ---- an element's parts: itself, its descriptors, its context ---- */

static size_t descs_size(const struct pool *pool)
{
	return pool->bufs * (pool->type == TI_RES_POOL_MSG ? sizeof(ti_local_data_desc_t)
							   : sizeof(ti_rdma_desc_t));
}

static struct element *element_at(const struct pool *pool, uint32_t i)
{
	return (struct element *)(pool->elements + i * pool->stride);
}

static char *buffers_of(const struct pool *pool, const struct element *el)
{
	size_t i = ((const char *)el - pool->elements) / pool->stride;

	return pool->buffers ? pool->buffers + i * pool->buffers_each : NULL;
}

static void reset_local(struct pool *pool, struct element *el)
{
	struct pool_reg *reg = pool_any_reg(pool);
	uint32_t key = reg ? atomic_load_explicit(&reg->lkey, memory_order_relaxed) : 0;
	ti_local_data_desc_t *d = (ti_local_data_desc_t *)(el + 1);
	char *at = buffers_of(pool, el);

	el->e.local_data_desc = d;
	for (uint32_t i = 0; i < pool->bufs; i++, d++) {
		d->vaddr = pool->buf_size[i] ? at : NULL;
		d->lkey = pool->buf_size[i] ? key : 0;
		d->byte_count = pool->buf_size[i];
		if (pool->buf_size[i])
			at += aligned(pool->buf_size[i]);
	}
}

static void reset_remote(struct pool *pool, struct element *el)
{
	struct pool_reg *reg = pool_any_reg(pool);
	uint32_t key = reg ? atomic_load_explicit(&reg->rkey, memory_order_relaxed) : 0;
	ti_rdma_desc_t *d = (ti_rdma_desc_t *)(el + 1);
	char *at = buffers_of(pool, el);

	el->e.rdma_data_desc = d;
	for (uint32_t i = 0; i < pool->bufs; i++, d++) {
		d->vaddr = pool->buf_size[i] ? (uintptr_t)at : 0;
		d->rkey = pool->buf_size[i] ? key : 0;
		if (pool->buf_size[i])
			at += aligned(pool->buf_size[i]);
	}
}

void pool_reset_element(struct pool *pool, struct element *el)
{
	el->e.num_io_bufs = pool->bufs;
	el->e.msg_opt = 0;
	el->e.oob_data_len = el->e.oob_data = 0;
	el->e.status = TI_NO_STATUS;
	el->e.recv_byte_count = el->e.ud_offset = 0;
	el->e.iodone = FALSE;
	el->has_remote = false;
	if (pool->type == TI_RES_POOL_MSG)
		reset_local(pool, el);
	else
		reset_remote(pool, el);
}

static void make_element(struct pool *pool, uint32_t i)
{
	struct element *el = element_at(pool, i);

	el->pool = pool;
	el->e.otd = el;
	el->e.pool_type = pool->type;
	if (pool->context_size)
		el->e.p_context = (char *)(el + 1) + aligned(descs_size(pool));
	el->e.p_next_msg = pool->free;
	pool->free = &el->e;
	pool->n_free++;
}

/* ---- memory ---- */

static void *map(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Under the service's lock. */
static void drop_reg(struct pd_guest *g)
{
	struct pool_reg *reg = (struct pool_reg *)g;
	struct pd *pd = atomic_load_explicit(&reg->pd, memory_order_relaxed);

	atomic_store_explicit(&reg->pd, NULL, memory_order_relaxed);
	(void)ibv_dereg_mr(reg->mr);
	pd_leave(pd, g);
}

static void unregister(struct pool *pool)
{
	struct pool_reg *reg = atomic_load_explicit(&pool->regs, memory_order_acquire), *next;

	if (!reg)
		return;
	lock_take(&pool->m.ti->guests);
	for (; reg; reg = next) {
		next = atomic_load_explicit(&reg->next, memory_order_relaxed);
		if (atomic_load_explicit(&reg->pd, memory_order_relaxed))
			drop_reg(&reg->guest);
		free(reg);
	}
	lock_drop(&pool->m.ti->guests);
}

static void free_pool(struct pool *pool)
{
	struct pool_wait *w, *next;

	for (w = pool->waits; w; w = next) {
		next = w->next;
		free(w);
	}
	if (pool->buffers)
		munmap(pool->buffers, pool->buffers_len);
	if (pool->elements)
		munmap(pool->elements, pool->count * pool->stride);
	free(pool->buf_size);
	free(pool);
}

static void destroy(struct object *o)
{
	struct pool *pool = (struct pool *)o;

	unregister(pool);
	member_end(&pool->m);
	free_pool(pool);
}

/* Sizes from the counts.  False: they do not fit. */
static bool measure(struct pool *pool, const uint32_t *sizes)
{
	uint64_t each = 0, total;

	for (uint32_t i = 0; i < pool->bufs; i++) {
		pool->buf_size[i] = sizes[i];
		each += aligned(sizes[i]);
	}
	pool->stride = aligned(
		sizeof(struct element) + aligned(descs_size(pool)) + (size_t)pool->context_size);
	pool->buffers_each = each;
	return !__builtin_mul_overflow(each, pool->count, &total) && total <= SIZE_MAX / 2 &&
	       (pool->buffers_len = total, true) &&
	       !__builtin_mul_overflow(pool->stride, (size_t)pool->count, &each);
}

static bool fill(struct pool *pool, const uint32_t *sizes)
{
	pool->buf_size = calloc(pool->bufs, sizeof *pool->buf_size);
	if (!pool->buf_size || !measure(pool, sizes))
		return false;
	pool->elements = map(pool->count * pool->stride);
	if (pool->buffers_len)
		pool->buffers = map(pool->buffers_len);
	if (!pool->elements || (pool->buffers_len && !pool->buffers))
		return false;
	for (uint32_t i = pool->count; i-- > 0;)
		make_element(pool, i);
	return true;
}

/* ---- whose an element is ---- */

static bool has_element(const struct pool *pool, const void *e)
{
	uintptr_t at = (uintptr_t)e - (uintptr_t)pool->elements;

	return at < pool->count * pool->stride && at % pool->stride == 0;
}

struct pool *pool_with(struct service *ti, const ti_data_element_t *e)
{
	struct member *m;

	lock_take(&ti->lock);
	for (m = ti->members; m; m = m->next)
		if (m->kind == HANDLE_POOL && has_element((struct pool *)m, e))
			break;
	if (m)
		object_hold(&m->obj);
	lock_drop(&ti->lock);
	return (struct pool *)m;
}

/* ---- registration ---- */

static struct pool_reg *find_reg(struct pool *pool, const struct pd *pd)
{
	struct pool_reg *reg = atomic_load_explicit(&pool->regs, memory_order_acquire);

	while (reg && atomic_load_explicit(&reg->pd, memory_order_acquire) != pd)
		reg = atomic_load_explicit(&reg->next, memory_order_acquire);
	return reg;
}

static int pool_access(const struct pool *pool)
{
	return pool->type == TI_RES_POOL_MSG ? IBV_ACCESS_LOCAL_WRITE
					     : mem_access(TI_MEM_READ_WRITE);
}

/* One that is free; NULL: there is no memory.  Under the service's lock. */
static struct pool_reg *spare_reg(struct pool *pool)
{
	_Atomic(struct pool_reg *) *end = &pool->regs;
	struct pool_reg *reg = find_reg(pool, NULL);

	if (reg)
		return reg;
	reg = calloc(1, sizeof *reg);
	if (!reg)
		return NULL;
	while (atomic_load_explicit(end, memory_order_relaxed))
		end = &atomic_load_explicit(end, memory_order_relaxed)->next;
	atomic_store_explicit(end, reg, memory_order_release);
	return reg;
}

/* Under the service's lock. */
static struct pool_reg *add_reg(struct pool *pool, struct pd *pd)
{
	struct pool_reg *reg = spare_reg(pool);

	if (!reg)
		return NULL;
	reg->mr = ibv_reg_mr(pd->ibpd, pool->buffers, pool->buffers_len, pool_access(pool));
	if (!reg->mr)
		return NULL;
	if (!pd_enter(pd, &reg->guest, drop_reg)) {
		(void)ibv_dereg_mr(reg->mr);
		return NULL;
	}
	atomic_store_explicit(&reg->lkey, reg->mr->lkey, memory_order_relaxed);
	atomic_store_explicit(&reg->rkey, reg->mr->rkey, memory_order_relaxed);
	atomic_store_explicit(&reg->pd, pd, memory_order_release);
	return reg;
}

bool pool_lkey(struct pool *pool, struct pd *pd, const void *addr, uint32_t *key, ti_status_t *st)
{
	struct pool_reg *reg;

	*st = TI_SUCCESS;
	if (!pool_owns(pool, addr, 0))
		return false;
	reg = find_reg(pool, pd);
	if (!reg) {
		lock_take(&pool->m.ti->guests);
		reg = find_reg(pool, pd);
		if (!reg)
			reg = add_reg(pool, pd);
		lock_drop(&pool->m.ti->guests);
	}
	if (reg)
		*key = atomic_load_explicit(&reg->lkey, memory_order_relaxed);
	else
		*st = TI_INSUFFICIENT_RESOURCES;
	return reg;
}

void pool_register_early(struct pool *pool)
{
	struct pd *pd = NULL;
	ti_status_t st;
	uint32_t key;
	int n = 0;

	lock_take(&pool->m.ti->lock);
	for (struct member *m = pool->m.ti->members; m; m = m->next)
		if (m->kind == HANDLE_PD && n++ == 0)
			pd = (struct pd *)m;
	if (n == 1)
		object_hold(&pd->m.obj);
	lock_drop(&pool->m.ti->lock);
	if (n == 1) {
		(void)pool_lkey(pool, pd, pool->buffers, &key, &st);
		object_put(&pd->m.obj);
	}
}

/* ---- the operations ---- */

static ti_status_t create(struct service *ti, const struct pool *what, const uint32_t *sizes,
	ti_res_pool_handle_t *ph_pool)
{
	struct pool *pool = malloc(sizeof *pool);
	ti_status_t st = TI_INSUFFICIENT_RESOURCES;

	if (!pool)
		return st;
	*pool = *what;
	pool->waits_end = &pool->waits;
	if (fill(pool, sizes))
		st = service_join(ti, &pool->m, HANDLE_POOL, destroy);
	if (st) {
		free_pool(pool);
		return st;
	}
	if (pool->buffers)
		pool_register_early(pool);
	*ph_pool = pool->m.obj.handle;
	object_put(&pool->m.obj);
	return TI_SUCCESS;
}

ti_status_t op_res_pool_create(ti_handle_t h_ti, ti_res_pool_type_t pool_type, uint32_t element_cnt,
	uint32_t bufs_per_element, uint32_t *buf_size_array, uint32_t context_size,
	ti_res_pool_handle_t *ph_pool)
{
	const struct pool what = {.type = pool_type,
		.count = element_cnt,
		.bufs = bufs_per_element,
		.context_size = context_size};
	struct service *ti;
	ti_status_t st = TI_INVALID_PARAMETER;

	if (ph_pool)
		*ph_pool = NULL;
	ti = service_get(h_ti);
	if (!ti)
		return TI_INVALID_HANDLE;
	if (ph_pool && element_cnt && bufs_per_element && bufs_per_element <= ELEMENT_BUFS &&
		buf_size_array && (unsigned)pool_type <= TI_RES_POOL_RDMA)
		st = create(ti, &what, buf_size_array, ph_pool);
	service_put(ti);
	return st;
}

ti_status_t op_res_pool_destroy(ti_res_pool_handle_t h_pool)
{
	struct pool *pool = pool_lock(h_pool);

	if (!pool)
		return TI_INVALID_HANDLE;
	if (pool->n_free < pool->count || pool->waits || pool->serving) {
		pool_unlock(pool);
		log_line(LOG_LVL_WARN,
			"ti: pool %p is not destroyed: elements are out, or are waited for",
			(void *)h_pool);
		return TI_RESOURCE_BUSY;
	}
	(void)service_leave_locked(&pool->m); /* the handle is open: it is ours to close */
	object_put(&pool->m.obj);
	return TI_SUCCESS;
}

ti_status_t ti_rdma_set_remote(ti_data_element_t *p_element, const ti_rdma_desc_t *p_remote)
{
	struct element *el = element_of(p_element);

	if (!el || !p_remote || el->e.pool_type != TI_RES_POOL_MSG || !element_is_out(el))
		return TI_INVALID_PARAMETER;
	el->remote = *p_remote;
	el->has_remote = true;
	return TI_SUCCESS;
}
