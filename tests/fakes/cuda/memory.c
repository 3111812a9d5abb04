// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fakes/cuda/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "tests/fakes/cuda/calls.h"
#include "tests/fakes/cuda/context.h"
#include "tests/fakes/cuda/stream.h"

#define ARENA (16ull << 30)

enum { ALIGN = 512, BIG = 2 << 20 };

enum kind {
	DEVICE,
	POOL,     /* of cuMemAllocAsync: of no context */
	MAPPED,   /* of cuMemMap: the same */
	HOST,     /* loaded from and stored to; so is */
	MANAGED,  /* this */
	RESERVED, /* addresses alone, others' lie in them */
};

struct area {
	uint64_t at;
	size_t size;
	enum kind kind;
	int device;
	struct CUctx_st *context;
	unsigned long long id;
	uint8_t *store;
	struct area *next;
};

/* What cuMemCreate() made. */
struct lump {
	size_t size;
	int device;
	unsigned refs; /* the program's, and each mapping's */
	uint8_t store[];
};

static struct {
	pthread_mutex_t lock; /* over a copy, too: what is copied is not freed */
	uint64_t arena;
	struct area *areas;
	unsigned long long last_id;
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- areas; with the lock held ---- */

static struct area *area_of(uint64_t at, size_t n)
{
	struct area *a = memory.areas;

	while (a && (a->kind == RESERVED || at < a->at || at - a->at >= a->size ||
			    n > a->size - (at - a->at)))
		a = a->next;
	return a;
}

static const struct area *in_the_way(uint64_t at, size_t size)
{
	const struct area *a = memory.areas;

	while (a && (a->at >= at + size || at >= a->at + a->size))
		a = a->next;
	return a;
}

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

/* The lowest that is free; 0: none. */
static uint64_t place_for(size_t size, uint64_t align)
{
	const struct area *a;
	uint64_t at;

	if (!memory.arena) {
		void *p = mmap(
			NULL, ARENA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (p == MAP_FAILED)
			return 0;
		memory.arena = round_up((uintptr_t)p, BIG);
	}
	at = memory.arena;
	while ((a = in_the_way(at, size)))
		at = round_up(a->at + a->size, align);
	return at + size <= memory.arena + ARENA - BIG ? at : 0;
}

static struct area *add(uint64_t at, size_t size, enum kind kind, int device)
{
	struct area *a = at ? calloc(1, sizeof *a) : NULL;

	if (!a)
		return NULL;
	a->at = at;
	a->size = size;
	a->kind = kind;
	a->device = device;
	a->id = ++memory.last_id;
	a->next = memory.areas;
	memory.areas = a;
	return a;
}

static void *pages(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void put_lump(struct lump *l)
{
	if (--l->refs == 0)
		free(l);
}

static void drop(struct area *a)
{
	struct area **at = &memory.areas;

	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	if (a->kind == MAPPED)
		put_lump((struct lump *)(a->store - offsetof(struct lump, store)));
	else if (a->store)
		munmap(a->store, a->size);
	free(a);
}

static struct area *begins_at(uint64_t at, enum kind kind)
{
	struct area *a = memory.areas;

	while (a && (a->at != at || a->kind != kind))
		a = a->next;
	return a;
}

static int give(uint64_t at, enum kind kind)
{
	struct area *a;

	pthread_mutex_lock(&memory.lock);
	a = begins_at(at, kind);
	if (a)
		drop(a);
	pthread_mutex_unlock(&memory.lock);
	return a ? 0 : CUDA_ERROR_INVALID_VALUE;
}

void memory_lose(const struct CUctx_st *c)
{
	struct area *a, *next;

	pthread_mutex_lock(&memory.lock);
	for (a = memory.areas; a; a = next) {
		next = a->next;
		if (a->context == c)
			drop(a);
	}
	pthread_mutex_unlock(&memory.lock);
}

/* ---- bytes ---- */

static void copy_part(const struct area *a, uint64_t at, size_t n, void *out, const void *in)
{
	uint8_t *bytes = a->store + (at - a->at);

	if (out)
		memcpy(out, bytes, n);
	else
		memcpy(bytes, in, n);
}

/* What was mapped side by side is copied at once; two allocations are not. */
static bool copy(uint64_t at, size_t n, uint8_t *out, const uint8_t *in)
{
	struct area *a = NULL;

	pthread_mutex_lock(&memory.lock);
	for (size_t done = 0, step; done < n; done += step) {
		a = area_of(at + done, 1);
		step = a ? a->at + a->size - (at + done) : 0;
		if (!a || (step < n - done && a->kind != MAPPED)) {
			a = NULL;
			break;
		}
		step = step < n - done ? step : n - done;
		copy_part(a, at + done, step, out ? out + done : NULL, in ? in + done : NULL);
	}
	pthread_mutex_unlock(&memory.lock);
	return a;
}

bool memory_write(uint64_t to, const void *from, size_t n)
{
	return copy(to, n, NULL, from);
}

bool memory_read(void *to, uint64_t from, size_t n)
{
	return copy(from, n, to, NULL);
}

bool memory_is_pinned(const void *at, size_t n)
{
	struct area *a;

	pthread_mutex_lock(&memory.lock);
	a = area_of((uintptr_t)at, n);
	pthread_mutex_unlock(&memory.lock);
	return a && a->kind == HOST;
}

/* ---- allocating ---- */

static int allocate(unsigned long long *at, size_t size, enum kind kind)
{
	struct CUctx_st *c = context_current();
	struct area *a = NULL;
	uint8_t *store = size ? pages(size) : NULL;

	if (!size)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&memory.lock);
	if (store)
		a = add(kind < HOST ? place_for(size, ALIGN) : (uintptr_t)store, size, kind,
			c->device);
	if (a) {
		a->store = store;
		a->context = kind == POOL ? NULL : c;
		*at = a->at;
	}
	pthread_mutex_unlock(&memory.lock);
	return a ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT int cuMemAlloc_v2(unsigned long long *at, size_t size)
{
	int rc = call_begin(__func__, CALLER, CONTEXT | UNSAFE, NULL);

	return rc ? rc : allocate(at, size, DEVICE);
}

EXPORT int cuMemAllocManaged(unsigned long long *at, size_t size, unsigned flags)
{
	int rc = call_begin(__func__, CALLER, CONTEXT | UNSAFE, NULL);

	(void)flags;
	return rc ? rc : allocate(at, size, MANAGED);
}

EXPORT int cuMemAllocAsync(unsigned long long *at, size_t size, struct CUstream_st *stream)
{
	int rc = call_begin(__func__, CALLER, CONTEXT | (stream ? 0 : DEFAULT_STREAM), NULL);

	return rc ? rc : allocate(at, size, POOL);
}

EXPORT int cuMemHostAlloc(void **at, size_t size, unsigned flags)
{
	int rc = call_begin(__func__, CALLER, CONTEXT | UNSAFE, NULL);
	unsigned long long address = 0;

	(void)flags;
	if (!rc)
		rc = allocate(&address, size, HOST);
	if (!rc)
		*at = (void *)(uintptr_t)address;
	return rc;
}

/* It waits for everything, kernels too. */
EXPORT int cuMemFree_v2(unsigned long long at)
{
	int rc = call_begin(__func__, CALLER, CONTEXT | UNSAFE | WHOLE_CONTEXT, NULL);

	if (rc)
		return rc;
	streams_drain(NULL);
	rc = give(at, DEVICE);
	return rc ? give(at, MANAGED) : 0;
}

EXPORT int cuMemFreeHost(void *at)
{
	int rc = call_begin(__func__, CALLER, CONTEXT | UNSAFE | WHOLE_CONTEXT, NULL);

	if (rc)
		return rc;
	streams_drain(NULL);
	return give((uintptr_t)at, HOST);
}

/* In the order of its stream. */
EXPORT int cuMemFreeAsync(unsigned long long at, struct CUstream_st *stream)
{
	int rc = call_begin(__func__, CALLER, CONTEXT | (stream ? 0 : DEFAULT_STREAM), NULL);

	if (rc)
		return rc;
	if (stream)
		streams_drain(stream);
	return give(at, POOL);
}

/* ---- reserved addresses, and memory mapped there ---- */

EXPORT int cuMemAddressReserve(unsigned long long *at, size_t size, size_t align,
	unsigned long long wanted, unsigned long long flags)
{
	int rc = call_begin(__func__, CALLER, ANYTIME, NULL);
	struct area *a;

	(void)wanted, (void)flags;
	if (rc || !size || size % BIG)
		return rc ? rc : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&memory.lock);
	a = add(place_for(size, align > BIG ? align : BIG), size, RESERVED, -1);
	if (a)
		*at = a->at;
	pthread_mutex_unlock(&memory.lock);
	return a ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT int cuMemAddressFree(unsigned long long at, size_t size)
{
	int rc = call_begin(__func__, CALLER, ANYTIME, NULL);

	(void)size;
	return rc ? rc : give(at, RESERVED);
}

EXPORT int cuMemCreate(unsigned long long *handle, size_t size, const struct cu_mem_prop *prop,
	unsigned long long flags)
{
	int rc = call_begin(__func__, CALLER, ANYTIME, NULL);
	struct lump *l;

	(void)flags;
	if (rc || !size || size % BIG || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return rc ? rc : CUDA_ERROR_INVALID_VALUE;
	l = calloc(1, sizeof *l + size);
	if (!l)
		return CUDA_ERROR_OUT_OF_MEMORY;
	l->size = size;
	l->device = prop->location.id;
	l->refs = 1;
	*handle = (uintptr_t)l;
	return 0;
}

EXPORT int cuMemRelease(unsigned long long handle)
{
	int rc = call_begin(__func__, CALLER, ANYTIME, NULL);

	if (rc)
		return rc;
	pthread_mutex_lock(&memory.lock);
	put_lump((struct lump *)(uintptr_t)handle);
	pthread_mutex_unlock(&memory.lock);
	return 0;
}

EXPORT int cuMemMap(unsigned long long at, size_t size, size_t offset, unsigned long long handle,
	unsigned long long flags)
{
	int rc = call_begin(__func__, CALLER, ANYTIME, NULL);
	struct lump *l = (struct lump *)(uintptr_t)handle;
	struct area *a = NULL;

	(void)flags;
	if (rc || offset || size != l->size)
		return rc ? rc : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&memory.lock);
	if (!area_of(at, 1))
		a = add(at, size, MAPPED, l->device);
	if (a) {
		a->store = l->store;
		l->refs++;
	}
	pthread_mutex_unlock(&memory.lock);
	return a ? 0 : CUDA_ERROR_INVALID_VALUE;
}

EXPORT int cuMemUnmap(unsigned long long at, size_t size)
{
	int rc = call_begin(__func__, CALLER, UNSAFE | WHOLE_CONTEXT, NULL);

	(void)size;
	if (rc)
		return rc;
	streams_drain(NULL);
	return give(at, MAPPED);
}

EXPORT int cuMemSetAccess(
	unsigned long long at, size_t size, const struct cu_mem_access *access, size_t n)
{
	(void)at, (void)size, (void)access, (void)n;
	return call_begin(__func__, CALLER, ANYTIME, NULL);
}

/* ---- what is known of an address ---- */

static void attribute(const struct area *a, int which, void *to)
{
	switch (which) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(struct CUctx_st **)to = a ? a->context : NULL;
		break;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)to = !a                ? 0
				  : a->kind == HOST ? CU_MEMORYTYPE_HOST
						    : CU_MEMORYTYPE_DEVICE;
		break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)to = a ? a->id : 0;
		break;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned *)to = a && a->kind == MANAGED;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)to = a ? a->device : -2;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(unsigned long long *)to = a ? a->at : 0;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)to = a ? a->size : 0;
		break;
	default:
		break;
	}
}

EXPORT int cuPointerGetAttributes(
	unsigned n, int *attributes, void **data, unsigned long long address)
{
	int rc = call_begin(__func__, CALLER, ANYTIME, NULL);
	const struct area *a;

	if (rc)
		return rc;
	pthread_mutex_lock(&memory.lock);
	a = area_of(address, 1);
	for (unsigned i = 0; i < n; i++)
		attribute(a, attributes[i], data[i]);
	pthread_mutex_unlock(&memory.lock);
	return 0;
}

/* Of a dma-buf it has nothing but that it is a file; as NVIDIA's it cannot be mapped. */
EXPORT int cuMemGetHandleForAddressRange(
	void *handle, unsigned long long at, size_t size, int type, unsigned long long flags)
{
	int rc = call_begin(__func__, CALLER, CONTEXT, NULL);
	bool known;

	if (rc || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags)
		return rc ? rc : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&memory.lock);
	known = area_of(at, size);
	pthread_mutex_unlock(&memory.lock);
	if (!known)
		return CUDA_ERROR_INVALID_VALUE;
	*(int *)handle = eventfd(0, EFD_CLOEXEC);
	return 0;
}
