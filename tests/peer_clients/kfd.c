// SPDX-License-Identifier: BSD-3-Clause
/*
 * A peer client as a kernel module would be, for memory that AMD's interface pins.  One source for
 * all generations of the API; docs/peercheck.md says how to compile it.
 */
#include <amd_rdma.h>
#include <linux/kref.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <rdma/peer_mem.h>

/* What stands for a region to the HCA: a pointer first, a number later. */
#if PEER_MEM_NUMBER == 1
typedef void *core_context_t;
#else
typedef u64 core_context_t;
#endif

struct kfd_region {
	struct kref refs; /* the HCA's, and the driver's as long as it may tell */
	unsigned long addr;
	size_t size;
	unsigned long page_size;
	struct pid *pid;
	core_context_t core;
	struct task_struct *teller; /* the thread that the driver tells in, while it does */
	struct mutex lock;          /* of what follows */
	struct amd_p2p_info *info;  /* NULL: not pinned, or gone */
	struct scatterlist *entries;
};

static const struct amd_rdma_interface *rdma;
static invalidate_peer_memory invalidate;
static void *handle;

static void free_region(struct kref *refs)
{
	struct kfd_region *r = container_of(refs, struct kfd_region, refs);

	kfree(r->entries);
	kfree(r);
}

/* The driver takes the memory, and frees what it gave when this returns. */
static void kfd_gone(void *client_priv)
{
	struct kfd_region *r = client_priv;

	WRITE_ONCE(r->teller, current);
	invalidate(handle, r->core);
	mutex_lock(&r->lock);
	r->info = NULL;
	mutex_unlock(&r->lock);
	kref_put(&r->refs, free_region);
}

static bool is_ours(const struct kfd_region *r)
{
	unsigned long page_size;

	return rdma->is_gpu_address(r->addr, r->pid) &&
	       !rdma->get_page_size(r->addr, r->size, r->pid, &page_size);
}

static int kfd_acquire(
	unsigned long addr, size_t size, void *private_data, char *peer_name, void **client_context)
{
	struct kfd_region *r;

	(void)private_data;
	(void)peer_name;
	if (!size || addr + size < addr)
		return 0;
	r = kzalloc(sizeof *r, GFP_KERNEL);
	if (!r)
		return 0;
	kref_init(&r->refs);
	mutex_init(&r->lock);
	r->addr = addr;
	r->size = size;
	r->pid = get_task_pid(current, PIDTYPE_PID);
	if (!is_ours(r)) {
		kfree(r);
		return 0;
	}
	__module_get(THIS_MODULE);
	*client_context = r;
	return 1;
}

static int pin(struct kfd_region *r)
{
#if AMD_RDMA_MAJOR >= 2
	return rdma->get_pages(r->addr, r->size, r->pid, NULL, &r->info, kfd_gone, r);
#else
	return rdma->get_pages(r->addr, r->size, r->pid, &r->info, kfd_gone, r);
#endif
}

static int kfd_get_pages(unsigned long addr, size_t size, int write, int force,
	struct sg_table *sg_head, void *client_context, core_context_t core_context)
{
	struct kfd_region *r = client_context;
	int rc;

	(void)addr;
	(void)size;
	(void)write;
	(void)force;
	(void)sg_head;
	r->core = core_context;
	rc = rdma->get_page_size(r->addr, r->size, r->pid, &r->page_size);
	if (rc)
		return rc;
	kref_get(&r->refs);
	rc = pin(r);
	if (rc)
		kref_put(&r->refs, free_region);
	return rc;
}

/* The driver's entries go with the memory, maybe before the HCA has read them: a copy of them. */
static int copy_entries(struct kfd_region *r, const struct sg_table *from)
{
	r->entries = kcalloc(from->nents, sizeof *r->entries, GFP_KERNEL);
	if (!r->entries)
		return -ENOMEM;
	memcpy(r->entries, from->sgl, from->nents * sizeof *r->entries);
	return 0;
}

static int kfd_dma_map(struct sg_table *sg_head, void *client_context, struct device *dma_device,
	int dmasync, int *nmap)
{
	struct kfd_region *r = client_context;
	int rc;

	(void)dma_device;
	(void)dmasync;
	mutex_lock(&r->lock);
	rc = r->info ? copy_entries(r, r->info->pages) : -EINVAL;
	if (!rc) {
		sg_head->sgl = r->entries;
		sg_head->nents = sg_head->orig_nents = r->info->pages->nents;
		*nmap = (int)sg_head->nents;
	}
	mutex_unlock(&r->lock);
	return rc;
}

static int kfd_dma_unmap(struct sg_table *sg_head, void *client_context, struct device *dma_device)
{
	(void)sg_head;
	(void)client_context;
	(void)dma_device;
	return 0;
}

static void kfd_put_pages(struct sg_table *sg_head, void *client_context)
{
	struct kfd_region *r = client_context;
	bool last;

	(void)sg_head;
	if (READ_ONCE(r->teller) == current)
		return; /* inside kfd_gone(), and the driver does it */
	mutex_lock(&r->lock);
	last = r->info && !rdma->put_pages(&r->info);
	mutex_unlock(&r->lock);
	if (last)
		kref_put(&r->refs, free_region);
}

static unsigned long kfd_get_page_size(void *client_context)
{
	const struct kfd_region *r = client_context;

	return r->page_size;
}

static void kfd_release(void *client_context)
{
	struct kfd_region *r = client_context;

	kref_put(&r->refs, free_region);
	module_put(THIS_MODULE);
}

#if PEER_MEM_NUMBER == 5
static const struct peer_memory_client_ex client_ex = {
	.ex_size = sizeof client_ex,
	.flags = PEER_MEM_INVALIDATE_UNMAPS,
	.client =
		{
			.version = {'1', '.', '0', [IB_PEER_MEMORY_VER_MAX - 1] = 1},
#else
static struct peer_memory_client client = {
	.version = "1.0",
#endif
			.name = "kfd_sample",
			.acquire = kfd_acquire,
			.get_pages = kfd_get_pages,
			.dma_map = kfd_dma_map,
			.dma_unmap = kfd_dma_unmap,
			.put_pages = kfd_put_pages,
			.get_page_size = kfd_get_page_size,
			.release = kfd_release,
#if PEER_MEM_NUMBER == 5
		},
};
#define REGISTERED (&client_ex.client)
#else
};
#define REGISTERED (&client)
#endif

#ifdef KFD_PRIV
#include "kfd_priv.h"

/* Another module has it, which need not be there. */
void kfd_init_peer_direct(void)
{
	__typeof__(&ib_register_peer_memory_client) begin =
		symbol_request(ib_register_peer_memory_client);

	if (begin && !amdkfd_query_rdma_interface(&rdma))
		handle = begin(REGISTERED, &invalidate);
	if (begin)
		symbol_put(ib_register_peer_memory_client);
	if (!handle)
		pr_err("the client was refused\n");
}

void kfd_close_peer_direct(void)
{
	__typeof__(&ib_unregister_peer_memory_client) end =
		symbol_request(ib_unregister_peer_memory_client);

	end(handle);
	symbol_put(ib_unregister_peer_memory_client);
}
#else
static int __init kfd_init(void)
{
	int rc = amdkfd_query_rdma_interface(&rdma);

	if (rc)
		return rc;
	handle = ib_register_peer_memory_client(REGISTERED, &invalidate);
	return handle ? 0 : -EINVAL;
}

static void __exit kfd_exit(void)
{
	ib_unregister_peer_memory_client(handle);
}

module_init(kfd_init);
module_exit(kfd_exit);
#endif

MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("A sample peer memory client over AMD's interface");
