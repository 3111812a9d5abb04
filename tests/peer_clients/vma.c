// SPDX-License-Identifier: BSD-3-Clause
/*
 * A peer client as a kernel module would be, for shared writable mappings of files, such as those
 * of a device's BAR.  It holds the file, so the memory stays, and asks for no callback.  One source
 * for all generations of the API; docs/peercheck.md says how to compile it.
 */
#include <linux/dma-mapping.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <rdma/peer_mem.h>

#if PEER_MEM_NUMBER == 1
typedef void *core_context_t;
#else
typedef u64 core_context_t;
#endif

struct vma_region {
	unsigned long start, pages;
	struct vm_area_struct *vma;
	struct file *file; /* NULL: not held */
};

static void *handle;

static bool is_ours(const struct vm_area_struct *vma, unsigned long addr, size_t size)
{
	const unsigned long need = VM_WRITE | VM_SHARED;

	return vma && vma->vm_file && addr >= vma->vm_start && addr + size <= vma->vm_end &&
	       (vma->vm_flags & need) == need;
}

static int vma_acquire(
	unsigned long addr, size_t size, void *private_data, char *peer_name, void **client_context)
{
	struct vm_area_struct *vma = find_vma(current->mm, addr);
	struct vma_region *r;

	(void)private_data;
	(void)peer_name;
	if (!size || addr + size < addr || !is_ours(vma, addr, size))
		return 0;
	r = kzalloc(sizeof *r, GFP_KERNEL);
	if (!r)
		return 0;
	r->vma = vma;
	r->start = addr & PAGE_MASK;
	r->pages = (PAGE_ALIGN(addr + size) - r->start) >> PAGE_SHIFT;
	__module_get(THIS_MODULE);
	*client_context = r;
	return 1;
}

static int vma_get_pages(unsigned long addr, size_t size, int write, int force,
	struct sg_table *sg_head, void *client_context, core_context_t core_context)
{
	struct vma_region *r = client_context;

	(void)write;
	(void)force;
	(void)sg_head;
	(void)core_context;
	if (!is_ours(find_vma(current->mm, addr), addr, size))
		return -EFAULT; /* it went meanwhile */
	r->file = get_file(r->vma->vm_file);
	return 0;
}

static int fill(const struct vma_region *r, struct scatterlist *list)
{
	struct scatterlist *sg;
	unsigned long pfn;
	int i, rc;

	for_each_sg(list, sg, (int)r->pages, i)
	{
		rc = follow_pfn(r->vma, r->start + (unsigned long)i * PAGE_SIZE, &pfn);
		if (rc)
			return rc;
		sg_set_page(sg, pfn_to_page(pfn), PAGE_SIZE, 0);
	}
	return 0;
}

static int vma_dma_map(struct sg_table *sg_head, void *client_context, struct device *dma_device,
	int dmasync, int *nmap)
{
	struct vma_region *r = client_context;
	int rc = sg_alloc_table(sg_head, (unsigned int)r->pages, GFP_KERNEL);

	(void)dmasync;
	if (rc)
		return rc;
	rc = fill(r, sg_head->sgl);
	if (!rc) {
		*nmap = dma_map_sg(dma_device, sg_head->sgl, (int)r->pages, DMA_BIDIRECTIONAL);
		rc = *nmap ? 0 : -EIO;
	}
	if (rc)
		sg_free_table(sg_head);
	return rc;
}

static int vma_dma_unmap(struct sg_table *sg_head, void *client_context, struct device *dma_device)
{
	const struct vma_region *r = client_context;

	dma_unmap_sg(dma_device, sg_head->sgl, (int)r->pages, DMA_BIDIRECTIONAL);
	sg_free_table(sg_head);
	return 0;
}

static void vma_put_pages(struct sg_table *sg_head, void *client_context)
{
	struct vma_region *r = client_context;

	(void)sg_head;
	fput(r->file);
	r->file = NULL;
}

static unsigned long vma_get_page_size(void *client_context)
{
	(void)client_context;
	return PAGE_SIZE;
}

static void vma_release(void *client_context)
{
	kfree(client_context);
	module_put(THIS_MODULE);
}

static struct peer_memory_client client = {
	.name = "vma_sample",
	.version = "1.0",
	.acquire = vma_acquire,
	.get_pages = vma_get_pages,
	.dma_map = vma_dma_map,
	.dma_unmap = vma_dma_unmap,
	.put_pages = vma_put_pages,
	.get_page_size = vma_get_page_size,
	.release = vma_release,
};

static int __init vma_init(void)
{
	handle = ib_register_peer_memory_client(&client, NULL);
	return handle ? 0 : -EINVAL;
}

static void __exit vma_exit(void)
{
	ib_unregister_peer_memory_client(handle);
}

module_init(vma_init);
module_exit(vma_exit);

MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("A sample peer memory client for mapped files");
