// SPDX-License-Identifier: BSD-3-Clause
/*
 * A peer client as a kernel module would be, for memory that NVIDIA's interface pins.  One source
 * for all generations of the API; docs/peercheck.md says how to compile it.
 *
 * A region lives as long as the HCA knows it and as long as the driver may still tell that its
 * memory goes: each of the two holds a reference.
 */
#include <linux/kref.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <nv-p2p.h>
#include <rdma/peer_mem.h>

#include "nv_entries.h"

/* What stands for a region to the HCA: a pointer first, a number later. */
#if PEER_MEM_NUMBER == 1
typedef void *core_context_t;
#else
typedef u64 core_context_t;
#endif

struct nv_region {
	struct kref refs;
	unsigned long start, length; /* whole pages of the GPU */
	core_context_t core;
	struct task_struct *teller; /* the thread that the driver tells in, while it does */
	struct mutex lock;          /* of what follows */
	struct nvidia_p2p_page_table *table; /* NULL: not pinned, or gone */
	struct nvidia_p2p_dma_mapping *mapping;
	struct scatterlist *entries;
};

static invalidate_peer_memory invalidate;
static void *handle;

static void free_region(struct kref *refs)
{
	struct nv_region *r = container_of(refs, struct nv_region, refs);

	kfree(r->entries);
	kfree(r);
}

/* ---- the driver takes memory away ---- */

/* Present drivers free both by themselves when this returns; old ones leave it to their client. */
static void nv_gone(void *data)
{
	struct nv_region *r = data;

	WRITE_ONCE(r->teller, current);
	invalidate(handle, r->core);
	mutex_lock(&r->lock);
	if (r->mapping)
		nvidia_p2p_free_dma_mapping(r->mapping);
	nvidia_p2p_free_page_table(r->table);
	r->mapping = NULL;
	r->table = NULL;
	mutex_unlock(&r->lock);
	kref_put(&r->refs, free_region);
}

/* ---- what the HCA calls ---- */

static void nv_probed(void *data)
{
	struct nv_region *r = data;

	mutex_lock(&r->lock);
	nvidia_p2p_free_page_table(r->table);
	r->table = NULL;
	mutex_unlock(&r->lock);
	kref_put(&r->refs, free_region);
}

/* False: the driver has told that the memory goes, or is about to. */
static bool unpin(struct nv_region *r)
{
	bool last;

	mutex_lock(&r->lock);
	last = r->table && !nvidia_p2p_put_pages(0, 0, r->start, r->table);
	if (last)
		r->table = NULL;
	mutex_unlock(&r->lock);
	if (last)
		kref_put(&r->refs, free_region);
	return last;
}

/* The driver holds a reference from now on, as it may tell, until it told or the pin is undone. */
static int pin(struct nv_region *r, void (*told)(void *data))
{
	int rc;

	kref_get(&r->refs);
	rc = nvidia_p2p_get_pages(0, 0, r->start, r->length, &r->table, told, r);
	if (rc)
		kref_put(&r->refs, free_region);
	return rc;
}

/* Pins it for a moment: the driver knows what is its own. */
static bool is_ours(struct nv_region *r)
{
	return pin(r, nv_probed) == 0 && unpin(r);
}

static int nv_acquire(
	unsigned long addr, size_t size, void *private_data, char *peer_name, void **client_context)
{
	struct nv_region *r;

	(void)private_data;
	(void)peer_name;
	if (!addr || !size || addr + size < addr || addr + size > ~GPU_PAGE)
		return 0;
	r = kzalloc(sizeof *r, GFP_KERNEL);
	if (!r)
		return 0;
	kref_init(&r->refs);
	mutex_init(&r->lock);
	r->start = ALIGN_DOWN(addr, GPU_PAGE);
	r->length = ALIGN(addr + size, GPU_PAGE) - r->start;
	if (!is_ours(r)) {
		kref_put(&r->refs, free_region);
		return 0;
	}
	__module_get(THIS_MODULE);
	*client_context = r;
	return 1;
}

static int nv_get_pages(unsigned long addr, size_t size, int write, int force,
	struct sg_table *sg_head, void *client_context, core_context_t core_context)
{
	struct nv_region *r = client_context;

	(void)addr;
	(void)size;
	(void)write;
	(void)force;
	(void)sg_head;
	r->core = core_context;
	return pin(r, nv_gone);
}

static int map_locked(struct nv_region *r, struct device *dma_device)
{
	struct pci_dev *pdev = to_pci_dev(dma_device);
	int rc;

	if (!r->table)
		return -EINVAL;
	rc = nvidia_p2p_dma_map_pages(pdev, r->table, &r->mapping);
	if (rc)
		return rc;
	rc = NVIDIA_P2P_DMA_MAPPING_VERSION_COMPATIBLE(r->mapping)
		     ? nv_entries(r->mapping, &r->entries)
		     : -EINVAL;
	if (rc) {
		nvidia_p2p_dma_unmap_pages(pdev, r->table, r->mapping);
		r->mapping = NULL;
	}
	return rc;
}

static int nv_dma_map(struct sg_table *sg_head, void *client_context, struct device *dma_device,
	int dmasync, int *nmap)
{
	struct nv_region *r = client_context;
	int rc;

	(void)dmasync;
	mutex_lock(&r->lock);
	rc = map_locked(r, dma_device);
	if (!rc) {
		sg_head->sgl = r->entries;
		sg_head->nents = sg_head->orig_nents = r->mapping->entries;
		*nmap = (int)r->mapping->entries;
	}
	mutex_unlock(&r->lock);
	return rc;
}

static int nv_dma_unmap(struct sg_table *sg_head, void *client_context, struct device *dma_device)
{
	struct nv_region *r = client_context;

	(void)sg_head;
	if (READ_ONCE(r->teller) == current)
		return 0; /* inside nv_gone(), which does it */
	mutex_lock(&r->lock);
	if (r->mapping && !nvidia_p2p_dma_unmap_pages(to_pci_dev(dma_device), r->table, r->mapping))
		r->mapping = NULL;
	mutex_unlock(&r->lock);
	return 0;
}

static void nv_put_pages(struct sg_table *sg_head, void *client_context)
{
	struct nv_region *r = client_context;

	(void)sg_head;
	if (READ_ONCE(r->teller) != current)
		unpin(r);
}

static unsigned long nv_get_page_size(void *client_context)
{
	(void)client_context;
	return GPU_PAGE;
}

static void nv_release(void *client_context)
{
	struct nv_region *r = client_context;

	kref_put(&r->refs, free_region);
	module_put(THIS_MODULE);
}

/* ---- the module ---- */

#if PEER_MEM_NUMBER == 5
static struct peer_memory_client_ex client_ex = {
	.ex_size = sizeof client_ex,
	.flags = PEER_MEM_INVALIDATE_UNMAPS,
	.client =
		{
			.version = {'1', '.', '0', [IB_PEER_MEMORY_VER_MAX - 1] = 1},
#else
static struct peer_memory_client client_only = {
	.version = "1.0",
#endif
			.name = "nv_sample",
			.acquire = nv_acquire,
			.get_pages = nv_get_pages,
			.dma_map = nv_dma_map,
			.dma_unmap = nv_dma_unmap,
			.put_pages = nv_put_pages,
			.get_page_size = nv_get_page_size,
			.release = nv_release,
#if PEER_MEM_NUMBER == 5
		},
};
static struct peer_memory_client *const client = &client_ex.client;
#else
};
static struct peer_memory_client *const client = &client_only;
#endif

static int __init nv_init(void)
{
	handle = ib_register_peer_memory_client(client, &invalidate);
	return handle ? 0 : -EINVAL;
}

static void __exit nv_exit(void)
{
	ib_unregister_peer_memory_client(handle);
}

module_init(nv_init);
module_exit(nv_exit);

MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("A sample peer memory client over NVIDIA's interface");
