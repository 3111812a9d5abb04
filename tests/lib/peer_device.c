// SPDX-License-Identifier: BSD-3-Clause
#define PEER_MEM_GENERATION E
#include "include/rdma/peer_mem.h"
#include "include/weft/peer.h"

#include "tests/lib/peer_device.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct peer_device peer_device;

static invalidate_peer_memory invalidate;
static uint64_t early; /* the context of a registration that another thread takes away */

struct context {
	uint64_t at, size; /* whole pages of the device, from its beginning */
	enum peer_fault fault;
	uint64_t core;
	uint64_t bus; /* of its window */
	bool unmapped;
};

static bool windows;

static void once(void (**fn)(void))
{
	void (*call)(void) = *fn;

	*fn = NULL;
	if (call)
		call();
}

static int acquire(
	unsigned long addr, size_t size, void *private_data, char *peer_name, void **context)
{
	const uint64_t from = (uint64_t)(uintptr_t)peer_device.addr;
	const uint64_t mask = PEER_DEVICE_PAGE - 1;
	struct context *c;

	(void)private_data;
	(void)peer_name;
	if (addr < from || addr - from >= peer_device.size ||
		size > peer_device.size - (addr - from))
		return 0;
	once(&peer_device.in_acquire);
	c = calloc(1, sizeof *c);
	if (!c)
		return 0;
	c->at = (addr - from) & ~mask;
	c->size = ((addr - from + size + mask) & ~mask) - c->at;
	c->fault = peer_device.fault;
	peer_device.fault = PEER_GOOD;
	__atomic_fetch_add(&peer_device.acquires, 1, __ATOMIC_RELAXED);
	*context = c;
	return 1;
}

static int get_pages(unsigned long addr, size_t size, int write, int force, struct sg_table *table,
	void *context, u64 core_context)
{
	struct context *c = context;

	(void)addr;
	(void)size;
	(void)table;
	peer_device.write = write;
	peer_device.force = force;
	if (c->fault == PEER_NO_PAGES)
		return -ENOMEM;
	if (c->fault == PEER_POSITIVE)
		return 5;
	c->core = core_context;
	__atomic_store_n(&peer_device.last, core_context, __ATOMIC_RELAXED);
	__atomic_fetch_add(&peer_device.gets, 1, __ATOMIC_RELAXED);
	return 0;
}

/* ---- the functions of a window ---- */

/* False: it has taken the memory away, and touches it no more. */
static bool enter(const struct context *c)
{
	__atomic_fetch_add(&peer_device.inside, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&peer_device.copies, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&c->unmapped, __ATOMIC_SEQ_CST))
		__atomic_fetch_add(&peer_device.late, 1, __ATOMIC_SEQ_CST);
	once(&peer_device.in_copy);
	if (!__atomic_exchange_n(&peer_device.take_in_copy, false, __ATOMIC_SEQ_CST))
		return true;
	peer_device.inside_answer = peer_device_take(c->core);
	return false;
}

static int leave(void)
{
	__atomic_fetch_sub(&peer_device.inside, 1, __ATOMIC_SEQ_CST);
	return __atomic_load_n(&peer_device.copy_answer, __ATOMIC_SEQ_CST);
}

static int copy_to(void *priv, uint64_t off, const void *src, size_t n)
{
	const struct context *c = priv;

	if (enter(c))
		memcpy(peer_device.store + c->at + off, src, n);
	return leave();
}

static int copy_from(void *priv, uint64_t off, void *dst, size_t n)
{
	const struct context *c = priv;

	if (enter(c))
		memcpy(dst, peer_device.store + c->at + off, n);
	return leave();
}

static const struct weft_dma_ops ops = {
	.size = sizeof ops, .copy_to = copy_to, .copy_from = copy_from};

/* ---- mapping ---- */

static void *take_early(void *arg)
{
	(void)arg;
	peer_device_take(early);
	return NULL;
}

static void take_while_mapping(const struct context *c)
{
	pthread_t t;

	if (c->fault == PEER_TAKEN_INSIDE)
		peer_device.inside_answer = peer_device_take(c->core);
	if (c->fault != PEER_TAKEN_EARLY)
		return;
	early = c->core;
	if (pthread_create(&t, NULL, take_early, NULL) == 0)
		pthread_detach(t);
}

/* Two entries, which adjoin unless they are to lie in pieces. */
static int fill(struct sg_table *table, struct context *c)
{
	uint64_t half = c->size / 2, store = (uint64_t)(uintptr_t)peer_device.store + c->at;
	struct scatterlist *s = calloc(2, sizeof *s);
	const bool turned = c->fault == PEER_PIECES;

	if (!s || (windows && weft_dma_window_add(&c->bus, c->size, 0, &ops, c)))
		return -ENOMEM;
	if (windows)
		store = c->bus;
	if (c->fault == PEER_NOWHERE)
		store = (uint64_t)(uintptr_t)peer_device.addr + c->at;
	s[turned].dma_address = store;
	s[!turned].dma_address = store + half;
	s[0].dma_length = s[1].dma_length = half;
	if (c->fault == PEER_MISALIGNED)
		s[0].dma_address += 8;
	if (c->fault == PEER_EMPTY)
		s[1].dma_length = 0;
	table->sgl = s;
	table->nents = table->orig_nents = 2;
	return 0;
}

static int dma_map(
	struct sg_table *table, void *context, struct device *device, int dmasync, int *nmap)
{
	struct context *c = context;
	int rc;

	(void)dmasync;
	if (c->fault == PEER_NO_MAP || !device)
		return -EIO;
	rc = fill(table, c);
	if (rc)
		return rc;
	*nmap = c->fault == PEER_NO_NMAP ? 0 : c->fault == PEER_SHORT ? 1 : 2;
	take_while_mapping(c);
	if (c->fault == PEER_NO_TABLE) {
		free(table->sgl);
		table->sgl = NULL;
	}
	__atomic_fetch_add(&peer_device.maps, 1, __ATOMIC_RELAXED);
	return 0;
}

static int dma_unmap(struct sg_table *table, void *context, struct device *device)
{
	struct context *c = context;

	(void)device;
	__atomic_store_n(&c->unmapped, true, __ATOMIC_SEQ_CST);
	if (c->bus && weft_dma_window_del(c->bus))
		abort();
	once(&peer_device.in_unmap);
	free(table->sgl);
	table->sgl = NULL;
	__atomic_fetch_add(&peer_device.unmaps, 1, __ATOMIC_RELAXED);
	return 0;
}

static void put_pages(struct sg_table *table, void *context)
{
	(void)table;
	(void)context;
	__atomic_fetch_add(&peer_device.puts, 1, __ATOMIC_RELAXED);
}

static unsigned long get_page_size(void *context)
{
	const struct context *c = context;

	return c->fault == PEER_PAGE_SIZE ? 3000 : PEER_DEVICE_PAGE;
}

static void release(void *context)
{
	free(context);
	__atomic_fetch_add(&peer_device.releases, 1, __ATOMIC_RELAXED);
}

static const struct peer_memory_client functions = {
	.version = "2.5",
	.acquire = acquire,
	.get_pages = get_pages,
	.dma_map = dma_map,
	.dma_unmap = dma_unmap,
	.put_pages = put_pages,
	.get_page_size = get_page_size,
	.release = release,
};

/* As the device has it, on one of its pages. */
static uint8_t *reserve(size_t size, int prot)
{
	uint8_t *p = mmap(NULL, size + PEER_DEVICE_PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p + (-(uintptr_t)p & (PEER_DEVICE_PAGE - 1));
}

bool peer_device_open(const char *name, size_t size, unsigned flags)
{
	struct peer_memory_client_ex ex = {.client = functions, .ex_size = sizeof ex};
	uint8_t *addr = reserve(size, PROT_NONE), *store = reserve(size, PROT_READ | PROT_WRITE);

	if (!addr || !store)
		return false;
	peer_device = (struct peer_device){.addr = addr, .store = store, .size = size};
	windows = flags & PEER_DEVICE_WINDOW;
	snprintf(ex.client.name, sizeof ex.client.name, "%s", name);
	ex.client.version[IB_PEER_MEMORY_VER_MAX - 1] = 1;
	ex.flags = flags & PEER_DEVICE_UNMAPS ? PEER_MEM_INVALIDATE_UNMAPS : 0;
	peer_device.handle = ib_register_peer_memory_client(
		&ex.client, flags & PEER_DEVICE_KEEPS ? NULL : &invalidate);
	return peer_device.handle;
}

int peer_device_take(uint64_t context)
{
	return invalidate(peer_device.handle, context);
}

void peer_device_close(void)
{
	ib_unregister_peer_memory_client(peer_device.handle);
	peer_device.handle = NULL;
}
