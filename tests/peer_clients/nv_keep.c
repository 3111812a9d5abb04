// SPDX-License-Identifier: BSD-3-Clause
/*
 * A peer client as a kernel module would be, for memory that NVIDIA's interface pins for good
 * (persistent pages): it stays until it is unpinned, whatever becomes of the allocation.  So the
 * client needs no callback, and its regions no locks.  -DPIN_FLAGS, -DUNPIN_FLAGS: flags that it
 * has not.
 */
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <nv-p2p.h>
#include <rdma/peer_mem.h>

#include "nv_entries.h"

#ifndef PIN_FLAGS
#define PIN_FLAGS 0
#endif
#ifndef UNPIN_FLAGS
#define UNPIN_FLAGS 0
#endif

#if PEER_MEM_NUMBER == 1
typedef void *core_context_t;
#else
typedef u64 core_context_t;
#endif

struct keep_region {
	unsigned long start, length; /* whole pages of the GPU */
	struct nvidia_p2p_page_table *table;
	struct nvidia_p2p_dma_mapping *mapping;
	struct scatterlist *entries;
};

static void *handle;

static int pin(struct keep_region *r)
{
	return nvidia_p2p_get_pages_persistent(r->start, r->length, &r->table, PIN_FLAGS);
}

static void unpin(struct keep_region *r)
{
	nvidia_p2p_put_pages_persistent(r->start, r->table, UNPIN_FLAGS);
	r->table = NULL;
}

/* The driver knows what is its own: it is pinned for a moment. */
static int keep_acquire(
	unsigned long addr, size_t size, void *private_data, char *peer_name, void **client_context)
{
	struct keep_region *r;

	(void)private_data;
	(void)peer_name;
	if (!addr || !size || addr + size < addr || addr + size > ~GPU_PAGE)
		return 0;
	r = kzalloc(sizeof *r, GFP_KERNEL);
	if (!r)
		return 0;
	r->start = ALIGN_DOWN(addr, GPU_PAGE);
	r->length = ALIGN(addr + size, GPU_PAGE) - r->start;
	if (pin(r)) {
		kfree(r);
		return 0;
	}
	unpin(r);
	__module_get(THIS_MODULE);
	*client_context = r;
	return 1;
}

static int keep_get_pages(unsigned long addr, size_t size, int write, int force,
	struct sg_table *sg_head, void *client_context, core_context_t core_context)
{
	(void)addr;
	(void)size;
	(void)write;
	(void)force;
	(void)sg_head;
	(void)core_context;
	return pin(client_context);
}

static int keep_dma_map(struct sg_table *sg_head, void *client_context, struct device *dma_device,
	int dmasync, int *nmap)
{
	struct pci_dev *pdev = to_pci_dev(dma_device);
	struct keep_region *r = client_context;
	int rc = nvidia_p2p_dma_map_pages(pdev, r->table, &r->mapping);

	(void)dmasync;
	if (rc)
		return rc;
	rc = nv_entries(r->mapping, &r->entries);
	if (rc) {
		nvidia_p2p_dma_unmap_pages(pdev, r->table, r->mapping);
		return rc;
	}
	sg_head->sgl = r->entries;
	sg_head->nents = sg_head->orig_nents = r->mapping->entries;
	*nmap = (int)r->mapping->entries;
	return 0;
}

static int keep_dma_unmap(struct sg_table *sg_head, void *client_context, struct device *dma_device)
{
	struct keep_region *r = client_context;

	(void)sg_head;
	kfree(r->entries);
	r->entries = NULL;
	return nvidia_p2p_dma_unmap_pages(to_pci_dev(dma_device), r->table, r->mapping);
}

static void keep_put_pages(struct sg_table *sg_head, void *client_context)
{
	(void)sg_head;
	unpin(client_context);
}

static unsigned long keep_get_page_size(void *client_context)
{
	(void)client_context;
	return GPU_PAGE;
}

static void keep_release(void *client_context)
{
	kfree(client_context);
	module_put(THIS_MODULE);
}

static const struct peer_memory_client client = {
	.name = "nv_keep_sample",
	.version = "1.0",
	.acquire = keep_acquire,
	.get_pages = keep_get_pages,
	.dma_map = keep_dma_map,
	.dma_unmap = keep_dma_unmap,
	.put_pages = keep_put_pages,
	.get_page_size = keep_get_page_size,
	.release = keep_release,
};

static int __init keep_init(void)
{
	handle = ib_register_peer_memory_client((struct peer_memory_client *)&client, NULL);
	return handle ? 0 : -EINVAL;
}

static void __exit keep_exit(void)
{
	ib_unregister_peer_memory_client(handle);
}

module_init(keep_init);
module_exit(keep_exit);

MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("A sample peer memory client over NVIDIA's persistent pages");
