// SPDX-License-Identifier: BSD-3-Clause
/* Compiled with -DPEER_MEM_GENERATION=X -DFAKE=fake_X; the header comes first, alone. */
#include "include/rdma/peer_mem.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/peermem_fake.h"

#define AT(member, offset)                                                                         \
	static_assert(offsetof(struct peer_memory_client, member) == (offset), #member)
#ifdef __LP64__
AT(name, 0);
AT(version, 64);
AT(acquire, 80);
AT(get_pages, 88);
AT(dma_map, 96);
AT(dma_unmap, 104);
AT(put_pages, 112);
AT(get_page_size, 120);
AT(release, 128);
static_assert(sizeof(struct sg_table) == 16, "sg_table");
static_assert(sizeof(struct scatterlist) == 32, "scatterlist");
static_assert(offsetof(struct scatterlist, dma_address) == 16, "dma_address");
static_assert(offsetof(struct scatterlist, dma_length) == 24, "dma_length");
#if PEER_MEM_NUMBER == 3
AT(get_context_private_data, 136);
AT(put_context_private_data, 144);
static_assert(sizeof(struct peer_memory_client) == 152, "size");
#else
static_assert(sizeof(struct peer_memory_client) == 136, "size");
#endif
#if PEER_MEM_NUMBER == 5
static_assert(offsetof(struct peer_memory_client_ex, ex_size) == 136, "ex_size");
static_assert(offsetof(struct peer_memory_client_ex, flags) == 144, "flags");
static_assert(sizeof(struct peer_memory_client_ex) == 152, "size");
#endif
#endif

#if PEER_MEM_NUMBER == 1
typedef void *context_type;
#else
typedef u64 context_type;
#endif

static invalidate_peer_memory callback;

static int acquire(
	unsigned long addr, size_t size, void *private_data, char *peer_name, void **context)
{
	(void)addr;
	(void)size;
	assert(!private_data && !peer_name);
	*context = &fake;
	return fake_called(FAKE_ACQUIRE);
}

static int get_pages(unsigned long addr, size_t size, int write, int force, struct sg_table *table,
	void *context, context_type core_context)
{
	(void)addr;
	(void)size;
	assert(context == &fake);
	fake.context = (uint64_t)core_context;
	fake.write = write;
	fake.force = force;
	fake.had_table = table != NULL;
	return fake_called(FAKE_GET_PAGES);
}

static int dma_map(
	struct sg_table *table, void *context, struct device *device, int dmasync, int *nmap)
{
	static struct scatterlist entry[FAKE_ENTRIES]; /* of all regions: they are alike */
	int rc = fake_called(FAKE_DMA_MAP);

	assert(context == &fake && !device && !dmasync && !table->sgl);
	if (rc)
		return rc;
	for (unsigned i = 0; i < fake.entries; i++) {
		entry[i].dma_address = fake.entry[i].address;
		entry[i].dma_length = fake.entry[i].length;
	}
	table->sgl = entry;
	table->nents = fake.entries;
	*nmap = fake.nmap ? fake.nmap : (int)fake.entries;
	return 0;
}

static int dma_unmap(struct sg_table *table, void *context, struct device *device)
{
	assert(context == &fake && !device && table->sgl && table->nents == fake.entries);
	table->sgl = NULL;
	return fake_called(FAKE_DMA_UNMAP);
}

static void put_pages(struct sg_table *table, void *context)
{
	assert(context == &fake && !table->sgl);
	fake_called(FAKE_PUT_PAGES);
}

static unsigned long get_page_size(void *context)
{
	assert(context == &fake);
	fake_called(FAKE_GET_PAGE_SIZE);
	return fake.page_size;
}

static void release(void *context)
{
	assert(context == &fake);
	fake_called(FAKE_RELEASE);
}

static void fill(struct peer_memory_client *c, const char *name, unsigned flags)
{
	snprintf(c->name, sizeof c->name, "%s", name);
	snprintf(c->version, sizeof c->version, "1.%d", PEER_MEM_NUMBER);
	c->acquire = acquire;
	c->get_pages = get_pages;
	c->dma_map = dma_map;
	c->dma_unmap = dma_unmap;
	c->put_pages = put_pages;
	c->get_page_size = flags & FAKE_NO_PAGE_SIZE ? NULL : get_page_size;
	c->release = flags & FAKE_NO_RELEASE ? NULL : release;
}

static void *open_client(const char *name, unsigned flags)
{
	invalidate_peer_memory *slot = flags & FAKE_NULL_CALLBACK ? NULL : &callback;
#if PEER_MEM_NUMBER == 5
	struct peer_memory_client_ex ex = {.ex_size = sizeof ex};

	fill(&ex.client, name, flags);
	ex.client.version[IB_PEER_MEMORY_VER_MAX - 1] = 1;
	ex.flags = flags & FAKE_UNMAPS ? PEER_MEM_INVALIDATE_UNMAPS : 0;
	return ib_register_peer_memory_client(&ex.client, slot);
#else
	struct peer_memory_client c = {0};

	fill(&c, name, flags);
	return ib_register_peer_memory_client(&c, slot);
#endif
}

static int invalidate(void *handle, uint64_t context)
{
	return callback(handle, (context_type)context);
}

const struct fake_generation FAKE = {"ABCDE"[PEER_MEM_NUMBER - 1], open_client, invalidate};
