// SPDX-License-Identifier: BSD-3-Clause
/*
 * A peer client of a program, without the kernel shim, that brings its device: areas of addresses
 * of this process.  WEFT_PEER_CLIENTS and weft peercheck load it as it is.
 */
#include <errno.h>
#include <pthread.h>
#include <rdma/peer_mem.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <weft/peercheck.h>

#define EXPORT __attribute__((visibility("default")))
#define PAGE   4096UL

struct area {
	struct area *next;
	uint64_t addr, size;
};

struct region {
	struct region *next;
	uint64_t addr, size;
	void *core;
	struct scatterlist entry;
	int pinned, refs; /* of the HCA, and of who tells that the area goes */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct area *areas;
static struct region *regions;
static unsigned long failing;
static long pins;
static invalidate_peer_memory invalidate;
static void *handle;

/* Whether the call is the one that is to fail. */
static int fails(void)
{
	return failing && --failing == 0;
}

static struct area *find(uint64_t addr, uint64_t n)
{
	struct area *a = areas;

	while (a && (addr < a->addr || n > a->size || addr - a->addr > a->size - n))
		a = a->next;
	return a;
}

/* ---- the client ---- */

static int own_acquire(unsigned long addr, size_t size, void *data, char *name, void **context)
{
	struct region *r = calloc(1, sizeof *r);

	(void)data;
	(void)name;
	pthread_mutex_lock(&lock);
	if (r && size && find(addr, size)) {
		*r = (struct region){.next = regions, .addr = addr, .size = size, .refs = 1};
		regions = r;
		*context = r;
	} else {
		free(r);
		r = NULL;
	}
	pthread_mutex_unlock(&lock);
	return r != NULL;
}

static int own_get_pages(unsigned long addr, size_t size, int write, int force,
	struct sg_table *table, void *context, void *core)
{
	struct region *r = context;
	int rc = 0;

	(void)write;
	(void)force;
	(void)table;
	pthread_mutex_lock(&lock);
	if (fails() || !find(addr, size))
		rc = -ENOMEM;
	r->core = core;
	r->pinned = !rc;
	pins += !rc;
	pthread_mutex_unlock(&lock);
	return rc;
}

static int own_dma_map(
	struct sg_table *table, void *context, struct device *device, int dmasync, int *nmap)
{
	struct region *r = context;
	const uint64_t from = r->addr & ~(PAGE - 1);

	(void)device;
	(void)dmasync;
	r->entry.dma_address = from;
	r->entry.dma_length = (unsigned int)(((r->addr + r->size + PAGE - 1) & ~(PAGE - 1)) - from);
	*table = (struct sg_table){&r->entry, 1, 1};
	*nmap = 1;
	return 0;
}

static int own_dma_unmap(struct sg_table *table, void *context, struct device *device)
{
	(void)table;
	(void)context;
	(void)device;
	return 0;
}

static void own_put_pages(struct sg_table *table, void *context)
{
	struct region *r = context;

	(void)table;
	pthread_mutex_lock(&lock);
	pins -= r->pinned;
	r->pinned = 0;
	pthread_mutex_unlock(&lock);
}

/* With the lock held. */
static void drop(struct region *r)
{
	struct region **at = &regions;

	if (--r->refs)
		return;
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	free(r);
}

static void own_release(void *context)
{
	pthread_mutex_lock(&lock);
	drop(context);
	pthread_mutex_unlock(&lock);
}

/* ---- the device ---- */

static int device_alloc(size_t n, uint64_t *addr)
{
	struct area *a = calloc(1, sizeof *a);
	void *p = mmap(NULL, n + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!a || p == MAP_FAILED || mprotect((char *)p + PAGE, n, PROT_READ | PROT_WRITE)) {
		free(a);
		return -ENOMEM;
	}
	pthread_mutex_lock(&lock);
	*a = (struct area){areas, (uintptr_t)p + PAGE, n};
	areas = a;
	*addr = a->addr;
	pthread_mutex_unlock(&lock);
	return 0;
}

static struct region *next_in(const struct area *a)
{
	struct region *r = regions;

	while (r && (!r->pinned || r->addr < a->addr || r->addr >= a->addr + a->size))
		r = r->next;
	return r;
}

static void tell_all(const struct area *a)
{
	struct region *r;

	while ((r = next_in(a))) {
		r->refs++;
		pthread_mutex_unlock(&lock);
		invalidate(handle, r->core);
		pthread_mutex_lock(&lock);
		pins -= r->pinned;
		r->pinned = 0;
		drop(r);
	}
}

static int device_free(uint64_t addr)
{
	struct area **at = &areas, *a;

	pthread_mutex_lock(&lock);
	while (*at && (*at)->addr != addr)
		at = &(*at)->next;
	a = *at;
	if (a) {
		*at = a->next;
		tell_all(a);
		mprotect((void *)a->addr, a->size, PROT_NONE);
		free(a);
	}
	pthread_mutex_unlock(&lock);
	return a ? 0 : -EINVAL;
}

static int device_write(uint64_t addr, const void *from, size_t n)
{
	memcpy((void *)addr, from, n);
	return 0;
}

static int device_read(uint64_t addr, void *to, size_t n)
{
	memcpy(to, (const void *)addr, n);
	return 0;
}

static long device_pinned(void)
{
	return pins;
}

static void device_fail_nth(unsigned long n)
{
	failing = n;
}

EXPORT const struct weft_peer_device weft_peer_device = {
	.size = sizeof weft_peer_device,
	.name = "own",
	.alloc = device_alloc,
	.free = device_free,
	.write = device_write,
	.read = device_read,
	.pinned = device_pinned,
	.fail_nth = device_fail_nth,
};

/* ---- the module ---- */

EXPORT int init_module(void);
EXPORT void cleanup_module(void);

int init_module(void)
{
	static struct peer_memory_client client = {.name = "own_sample",
		.version = "1.0",
		.acquire = own_acquire,
		.get_pages = own_get_pages,
		.dma_map = own_dma_map,
		.dma_unmap = own_dma_unmap,
		.put_pages = own_put_pages,
		.release = own_release};

	handle = ib_register_peer_memory_client(&client, &invalidate);
	return handle ? 0 : -EINVAL;
}

void cleanup_module(void)
{
	ib_unregister_peer_memory_client(handle);
}
