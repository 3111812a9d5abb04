// SPDX-License-Identifier: BSD-3-Clause
/*
 * tests/howto/memory/toy.h once more, as the memory of a peer client that lies in a DMA window: the
 * program registers addresses that nobody can touch, pages lie in the window in the other order,
 * and each region has one of its own, which goes when the client unmaps.
 */
#define PEER_MEM_GENERATION E
#include "include/rdma/peer_mem.h"
#include "include/weft/peer.h"

#include "tests/howto/memory/toy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/check.h"

#ifdef TOY_ANYWHERE
#define TOY_FLAGS WEFT_DMA_ANY_THREAD
#else
#define TOY_FLAGS 0
#endif

enum { PAGE = 65536, TOYS = 8 };

/* A toy that is registered, at addresses of its own. */
static struct device {
	struct toy *toy;
	uint8_t *addr;
	struct ibv_mr *mr;
	uint64_t bus;
	size_t size; /* whole pages */
	struct sg_table *table;
} devices[TOYS];

static invalidate_peer_memory invalidate;

/* ---- the bytes: page i of a device lies where page n-1-i of the window is ---- */

static uint64_t turned(const struct device *d, uint64_t off)
{
	return d->size - PAGE - off / PAGE * PAGE + off % PAGE;
}

/* The bytes that lie together, no more than n. */
static size_t step(uint64_t off, size_t n)
{
	size_t left = PAGE - off % PAGE;

	return n < left ? n : left;
}

static void enter(struct toy *t)
{
	atomic_fetch_add(&t->inside, 1);
	atomic_fetch_add(&t->calls, 1);
}

static int copy_to(void *priv, uint64_t off, const void *src, size_t n)
{
	struct device *d = priv;
	const char *from = src;

	if (atomic_load(&d->toy->broken))
		return -EIO;
	enter(d->toy);
	for (size_t now; n; off += now, from += now, n -= now) {
		now = step(off, n);
		toy_put(d->toy, turned(d, off), from, now);
	}
	atomic_fetch_sub(&d->toy->inside, 1);
	return 0;
}

static int copy_from(void *priv, uint64_t off, void *dst, size_t n)
{
	struct device *d = priv;
	char *to = dst;

	enter(d->toy);
	for (size_t now; n; off += now, to += now, n -= now) {
		now = step(off, n);
		toy_get(d->toy, turned(d, off), to, now);
	}
	atomic_fetch_sub(&d->toy->inside, 1);
	return atomic_load(&d->toy->broken) ? -EIO : 0;
}

static int flush(void *priv)
{
	struct device *d = priv;

	return atomic_load(&d->toy->broken) ? -EIO : 0;
}

static const struct weft_dma_ops ops = {
	.size = sizeof ops, .copy_to = copy_to, .copy_from = copy_from, .flush = flush};

/* ---- the client ---- */

static int acquire(
	unsigned long addr, size_t size, void *private_data, char *peer_name, void **context)
{
	(void)private_data;
	(void)peer_name;
	for (struct device *d = devices; d < devices + TOYS; d++)
		if (d->toy && addr == (unsigned long)(uintptr_t)d->addr && size <= d->size) {
			*context = d;
			return 1;
		}
	return 0;
}

static int get_pages(unsigned long addr, size_t size, int write, int force, struct sg_table *table,
	void *context, u64 core_context)
{
	struct device *d = context;

	(void)addr;
	(void)size;
	(void)write;
	(void)force;
	(void)core_context;
	d->table = table;
	return 0;
}

static int dma_map(
	struct sg_table *table, void *context, struct device *device, int dmasync, int *nmap)
{
	struct device *d = context;
	const unsigned n = d->size / PAGE;

	(void)device;
	(void)dmasync;
	d->bus = 0;
	if (weft_dma_window_add(&d->bus, d->size, TOY_FLAGS, &ops, d))
		return -ENOMEM;
	table->sgl = calloc(n, sizeof *table->sgl);
	table->nents = table->orig_nents = n;
	for (unsigned i = 0; i < n; i++) {
		table->sgl[i].dma_address = d->bus + (uint64_t)(n - 1 - i) * PAGE;
		table->sgl[i].dma_length = PAGE;
	}
	CHECK(weft_dma_window_del(d->bus + PAGE) == -ENOENT);
	*nmap = n;
	return 0;
}

static int dma_unmap(struct sg_table *table, void *context, struct device *device)
{
	struct device *d = context;

	(void)device;
	free(table->sgl);
	table->sgl = NULL;
	CHECK_EQ(weft_dma_window_del(d->bus), 0);
	return 0;
}

static void put_pages(struct sg_table *table, void *context)
{
	(void)table;
	(void)context;
}

static const struct peer_memory_client client = {
	.name = "window_toy",
	.version = "1",
	.acquire = acquire,
	.get_pages = get_pages,
	.dma_map = dma_map,
	.dma_unmap = dma_unmap,
	.put_pages = put_pages,
};

/* ---- as the toy has it ---- */

void toy_put(struct toy *t, size_t off, const void *from, size_t n)
{
	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < n; i++)
		t->store[off + i] = ((const uint8_t *)from)[i] ^ TOY_MASK;
	pthread_mutex_unlock(&t->lock);
}

void toy_get(struct toy *t, size_t off, void *to, size_t n)
{
	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < n; i++)
		((uint8_t *)to)[i] = t->store[off + i] ^ TOY_MASK;
	pthread_mutex_unlock(&t->lock);
}

static struct device *device_of(const struct toy *t)
{
	struct device *d = devices;

	while (d < devices + TOYS && d->toy != t)
		d++;
	return d < devices + TOYS ? d : NULL;
}

static int add_device(struct toy *t, size_t len)
{
	struct device *d = device_of(NULL);

	if (!d)
		return -ENOMEM;
	d->size = (len + PAGE - 1) / PAGE * PAGE;
	d->addr = mmap(NULL, d->size + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (d->addr == MAP_FAILED)
		return -ENOMEM;
	d->addr += -(uintptr_t)d->addr % PAGE;
	d->toy = t;
	return 0;
}

int toy_reg(struct toy *t, struct ibv_pd *pd, size_t len, uint64_t iova, int access)
{
	struct device *d;
	int rc;

	if (!invalidate && !ib_register_peer_memory_client(&client, &invalidate))
		return -EINVAL;
	rc = add_device(t, len);
	if (rc)
		return rc;
	d = device_of(t);
	pthread_mutex_init(&t->lock, NULL);
	atomic_store(&t->broken, false);
	atomic_store(&t->calls, 0);
	atomic_store(&t->inside, 0);
	t->len = len;
	t->iova = iova;
	t->store = malloc(d->size);
	memset(t->store, TOY_MASK, d->size);
	d->mr = ibv_reg_mr_iova(pd, d->addr, len, iova, access);
	if (!d->mr)
		return -errno;
	CHECK_EQ(weft_dma_window_del(d->bus), -EBUSY);
	t->key = d->mr->lkey;
	return 0;
}

void toy_dereg(struct toy *t)
{
	struct device *d = device_of(t);

	CHECK_EQ(ibv_dereg_mr(d->mr), 0);
	d->toy = NULL;
	free(t->store);
	t->store = NULL;
}
