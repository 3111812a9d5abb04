// SPDX-License-Identifier: BSD-3-Clause
/*
 * A plug-in for WEFT_PEER_CLIENTS that claims all memory which the program registers, so that tests
 * written for ordinary memory run once more on that of a client.  CLAIM_OWNED: it lies in DMA
 * windows, whose functions are memcpy(), and may be taken away; else where it is, for as long as
 * the region lives.  What is no memory it leaves alone, so that it is refused as ever.
 */
#define PEER_MEM_GENERATION E
#include "include/rdma/peer_mem.h"
#include "include/weft/peer.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pages/mapped.h"

enum { PAGE = 4096, LARGEST = 1 << 30 /* of an entry, whose length has 32 bits */ };

struct claim {
	uint64_t from, size; /* whole pages */
	uint64_t bus;        /* of its window */
};

int init_module(void);

/* ---- the functions of a window ---- */

static int copy_to(void *priv, uint64_t off, const void *src, size_t n)
{
	const struct claim *c = priv;

	memcpy((void *)(uintptr_t)(c->from + off), src, n);
	return 0;
}

static int copy_from(void *priv, uint64_t off, void *dst, size_t n)
{
	const struct claim *c = priv;

	memcpy(dst, (const void *)(uintptr_t)(c->from + off), n);
	return 0;
}

/* The word is in ordinary memory, and may be in another region, too. */
static int atomic64(void *priv, uint64_t off, int op, uint64_t a, uint64_t b, uint64_t *old)
{
	const struct claim *c = priv;
	uint64_t *word = (uint64_t *)(uintptr_t)(c->from + off);

	*old = a;
	if (op == WEFT_DMA_FETCH_ADD)
		*old = __atomic_fetch_add(word, a, __ATOMIC_SEQ_CST);
	else
		__atomic_compare_exchange_n(word, old, b, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return 0;
}

static const struct weft_dma_ops ops = {
	.size = sizeof ops, .copy_to = copy_to, .copy_from = copy_from, .atomic64 = atomic64};

/* ---- the client ---- */

static int acquire(
	unsigned long addr, size_t size, void *private_data, char *peer_name, void **context)
{
	struct claim *c;

	(void)private_data, (void)peer_name;
	if (addr + size < addr || mapped_check(addr, size, false))
		return 0;
	c = calloc(1, sizeof *c);
	if (!c)
		return 0;
	c->from = addr & -(uint64_t)PAGE;
	c->size = ((addr + size + PAGE - 1) & -(uint64_t)PAGE) - c->from;
	*context = c;
	return 1;
}

static int get_pages(unsigned long addr, size_t size, int write, int force, struct sg_table *table,
	void *context, u64 core_context)
{
	(void)write, (void)table, (void)context, (void)core_context;
	return mapped_check(addr, size, !force);
}

static int add_window(struct claim *c)
{
#ifdef CLAIM_OWNED
	return weft_dma_window_add(&c->bus, c->size, 0, &ops, c);
#else
	(void)ops;
	c->bus = c->from;
	return 0;
#endif
}

static int dma_map(
	struct sg_table *table, void *context, struct device *device, int dmasync, int *nmap)
{
	struct claim *c = context;
	unsigned n = (c->size + LARGEST - 1) / LARGEST;
	int rc = add_window(c);

	(void)device, (void)dmasync;
	table->sgl = rc ? NULL : calloc(n, sizeof *table->sgl);
	if (!table->sgl)
		return rc ? rc : -ENOMEM;
	table->nents = table->orig_nents = *nmap = n;
	for (unsigned i = 0; i < n; i++) {
		uint64_t at = (uint64_t)i * LARGEST, left = c->size - at;

		table->sgl[i].dma_address = c->bus + at;
		table->sgl[i].dma_length = left < LARGEST ? left : LARGEST;
	}
	return 0;
}

static int dma_unmap(struct sg_table *table, void *context, struct device *device)
{
	struct claim *c = context;

	(void)device;
	free(table->sgl);
#ifdef CLAIM_OWNED
	if (weft_dma_window_del(c->bus))
		abort();
#else
	(void)c;
#endif
	return 0;
}

static void put_pages(struct sg_table *table, void *context)
{
	(void)table, (void)context;
}

static void release(void *context)
{
	free(context);
}

int init_module(void)
{
	static const struct peer_memory_client client = {.name = "claims_all",
		.version = "1",
		.acquire = acquire,
		.get_pages = get_pages,
		.dma_map = dma_map,
		.dma_unmap = dma_unmap,
		.put_pages = put_pages,
		.release = release};
	static invalidate_peer_memory invalidate;
	invalidate_peer_memory *may_take = &invalidate;

#ifndef CLAIM_OWNED
	may_take = NULL;
#endif
	return ib_register_peer_memory_client(&client, may_take) ? 0 : -EINVAL;
}
