// SPDX-License-Identifier: BSD-3-Clause
#include "peermem/gpu_region.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "include/weft/peer.h"
#include "peermem/client.h"
#include "peermem/gpu_lane.h"

#define ENTRY_BYTES (1ull << 30) /* of the table, whose lengths have 32 bits */

enum { PAGE = 65536 }; /* as NVIDIA's own client says */

/* In the order of their addresses, without holes. */
struct gpu_ranges {
	struct gpu_range *v;
	unsigned count;
};

struct gpu_region {
	uint64_t begin, length; /* whole pages around what was registered: the window's */
	struct gpu_ranges ranges;
	struct gpu_lane *lane;
	u64 core_context;
	_Atomic bool taken; /* the callback was called */
	uint64_t bus;       /* of the window */
	struct scatterlist *table;
};

/* There is one row: a client's functions are told no more than their region. */
static struct {
	struct lock lock; /* while it is registered: who finds it at once has its handle */
	const struct gpu_api *api;
	invalidate_peer_memory invalidate;
	void *handle;
	_Atomic bool knew; /* the driver was initialised */
	bool inherited;    /* ... in the process that forked us: it does nothing here */
} client;

/* ---- whose memory ---- */

static bool find(uint64_t addr, struct gpu_range *out)
{
	if (!client.api->find(addr, out))
		return false;
	atomic_store_explicit(&client.knew, true, memory_order_relaxed);
	return true;
}

static bool add_range(struct gpu_ranges *to, const struct gpu_range *range)
{
	const unsigned n = to->count;
	struct gpu_range *v;

	if (n && (range->device != to->v[0].device || range->context != to->v[0].context))
		return false;
	v = n & (n - 1) ? to->v : realloc(to->v, (n ? 2 * n : 1) * sizeof *v);
	if (!v)
		return false;
	v[n] = *range;
	to->v = v;
	to->count++;
	return true;
}

/* The allocations under that range, to be freed.  False: not all of it is such memory. */
static bool find_all(uint64_t addr, uint64_t length, struct gpu_ranges *out)
{
	struct gpu_range range;

	out->v = NULL;
	out->count = 0;
	for (uint64_t at = addr; at - addr < length; at = range.start + range.size) {
		if (find(at, &range) && add_range(out, &range))
			continue;
		free(out->v);
		return false;
	}
	return true;
}

bool gpu_is_device_memory(uint64_t addr, uint64_t length)
{
	struct gpu_ranges ranges;

	if (client.inherited || !find_all(addr, length, &ranges))
		return false;
	free(ranges.v);
	return true;
}

static int acquire(
	unsigned long addr, size_t size, void *private_data, char *peer_name, void **context)
{
	const uint64_t mask = PAGE - 1;
	struct gpu_ranges ranges;
	struct gpu_region *g;

	(void)private_data, (void)peer_name;
	if (client.inherited || !find_all(addr, size, &ranges))
		return 0;
	g = calloc(1, sizeof *g);
	if (!g) {
		free(ranges.v);
		return 0;
	}
	g->begin = addr & ~mask;
	g->length = ((addr + size + mask) & ~mask) - g->begin;
	g->ranges = ranges;
	*context = g;
	return 1;
}

/* ---- its bytes ---- */

/* The last that does not begin behind at. */
static const struct gpu_range *range_at(const struct gpu_region *g, uint64_t at)
{
	unsigned lo = 0, hi = g->ranges.count;

	while (hi - lo > 1) {
		unsigned mid = lo + (hi - lo) / 2;

		if (g->ranges.v[mid].start <= at)
			lo = mid;
		else
			hi = mid;
	}
	return &g->ranges.v[lo];
}

static bool is_same(const struct gpu_range *was)
{
	struct gpu_range now;

	return find(was->start, &now) && now.id == was->id && now.start == was->start &&
	       now.size == was->size && now.device == was->device && now.context == was->context;
}

/* Nothing was freed of n bytes at at, nor the context under them. */
static bool is_there(const struct gpu_region *g, uint64_t at, uint64_t n)
{
	const struct gpu_range *r = range_at(g, at), *end = g->ranges.v + g->ranges.count;

	if (!r->context && !gpu_lane_is_alive(g->lane))
		return false;
	for (; r < end && r->start < at + n; r++)
		if (!is_same(r))
			return false;
	return true;
}

/* One of to and from; the other is the device's memory at at.  Each allocation has calls of its
 * own. */
static int copy(const struct gpu_region *g, uint64_t at, void *to, const void *from, uint64_t n)
{
	int rc = 0;

	for (uint64_t done = 0, step; done < n && !rc; done += step) {
		const struct gpu_range *r = range_at(g, at + done);
		uint64_t left = r->start + r->size - (at + done);

		step = n - done < left ? n - done : left;
		if (to)
			rc = gpu_lane_read(g->lane, (uint8_t *)to + done, at + done, step);
		else
			rc = gpu_lane_write(g->lane, at + done, (const uint8_t *)from + done, step);
	}
	return rc;
}

/*
 * The region is taken away; it is looked at no more afterwards.  The first that finds it gone does
 * so, which waits for the others that are in a copy: so they must not call back, too.
 */
static int gone(struct gpu_region *g)
{
	void *handle;

	if (atomic_exchange_explicit(&g->taken, true, memory_order_relaxed))
		return -ENOENT;

	log_line(LOG_LVL_INFO, "%s: memory at %#" PRIx64 " was freed while it is registered",
		client.api->client, g->ranges.v[0].start);
	lock_take(&client.lock);
	handle = client.handle;
	lock_drop(&client.lock);
	client.invalidate(handle, g->core_context);
	return -ENOENT;
}

static int move(struct gpu_region *g, uint64_t off, void *to, const void *from, uint64_t n)
{
	struct gpu_inside was;
	int rc = -ENOENT;

	if (!is_there(g, g->begin + off, n) || gpu_lane_enter(g->lane, &was))
		return gone(g);
	rc = copy(g, g->begin + off, to, from, n);
	gpu_lane_leave(g->lane, &was);
	return rc;
}

static int copy_to(void *priv, uint64_t off, const void *src, size_t n)
{
	return move(priv, off, NULL, src, n);
}

static int copy_from(void *priv, uint64_t off, void *dst, size_t n)
{
	return move(priv, off, dst, NULL, n);
}

static int flush(void *priv)
{
	struct gpu_region *g = priv;
	struct gpu_inside was;
	int rc = gpu_lane_enter(g->lane, &was);

	if (rc)
		return gone(g);
	rc = gpu_lane_flush(g->lane);
	gpu_lane_leave(g->lane, &was);
	return rc;
}

/* ---- the client's other functions ---- */

static int get_pages(unsigned long addr, size_t size, int write, int force, struct sg_table *table,
	void *context, u64 core_context)
{
	struct gpu_region *g = context;

	(void)addr, (void)size, (void)write, (void)force, (void)table;
	g->core_context = core_context;
	return gpu_lane_get(client.api, &g->ranges.v[0], &g->lane);
}

static int fill_table(struct gpu_region *g, unsigned n)
{
	g->table = calloc(n, sizeof *g->table);
	if (!g->table)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		uint64_t left = g->length - i * ENTRY_BYTES;

		g->table[i].dma_address = g->bus + i * ENTRY_BYTES;
		g->table[i].dma_length = left < ENTRY_BYTES ? left : ENTRY_BYTES;
	}
	return 0;
}

static int dma_map(
	struct sg_table *table, void *context, struct device *device, int dmasync, int *nmap)
{
	static const struct weft_dma_ops ops = {
		.size = sizeof ops, .copy_to = copy_to, .copy_from = copy_from, .flush = flush};
	struct gpu_region *g = context;
	unsigned n = (g->length + ENTRY_BYTES - 1) / ENTRY_BYTES;
	int rc;

	(void)device, (void)dmasync;
	g->bus = 0;
	rc = weft_dma_window_add(&g->bus, g->length, 0, &ops, g);
	if (rc)
		return rc;
	rc = fill_table(g, n);
	if (rc) {
		weft_dma_window_del(g->bus);
		return rc;
	}
	table->sgl = g->table;
	table->nents = table->orig_nents = n;
	*nmap = (int)n;
	return 0;
}

/* What was written may still be on its way. */
static void drain(const struct gpu_region *g)
{
	struct gpu_inside was;

	if (gpu_lane_enter(g->lane, &was))
		return;
	gpu_lane_flush(g->lane);
	gpu_lane_leave(g->lane, &was);
}

static int dma_unmap(struct sg_table *table, void *context, struct device *device)
{
	struct gpu_region *g = context;

	(void)device;
	drain(g);
	weft_dma_window_del(g->bus);
	table->sgl = NULL;
	table->nents = table->orig_nents = 0;
	free(g->table);
	g->table = NULL;
	return 0;
}

static void put_pages(struct sg_table *table, void *context)
{
	struct gpu_region *g = context;

	(void)table;
	gpu_lane_put(g->lane);
	g->lane = NULL;
}

static unsigned long page_size(void *context)
{
	(void)context;
	return PAGE;
}

static void release(void *context)
{
	struct gpu_region *g = context;

	free(g->ranges.v);
	free(g);
}

/* ---- the client ---- */

bool gpu_register(const struct gpu_api *api)
{
	struct peer_memory_client c = {
		.version = WEFT_VERSION,
		.acquire = acquire,
		.get_pages = get_pages,
		.dma_map = dma_map,
		.dma_unmap = dma_unmap,
		.put_pages = put_pages,
		.get_page_size = page_size,
		.release = release,
	};

	strncpy(c.name, api->client, sizeof c.name - 1);
	lock_take(&client.lock);
	client.api = api;
	client.handle = ib_register_peer_memory_client(&c, &client.invalidate);
	lock_drop(&client.lock);
	return client.handle;
}

void gpu_regions_forked_child(void)
{
	const struct lock open = {.word = 0};

	client.lock = open;
	client.inherited |= atomic_load_explicit(&client.knew, memory_order_relaxed);
}
