// SPDX-License-Identifier: BSD-3-Clause
/*
 * The client of kfd.c as a part of AMD's own module, with the includes of that one: the API, of the
 * first generation, is in the source, and AMD's interface comes with kfd_priv.h.
 */
#include <linux/device.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "kfd_priv.h"

#define RDMA_PEER_MEM_H         /* kfd.c takes nothing of it, either */
#define PEER_MEM_NUMBER         1
#define IB_PEER_MEMORY_NAME_MAX 64
#define IB_PEER_MEMORY_VER_MAX  16

struct peer_memory_client {
	char name[IB_PEER_MEMORY_NAME_MAX];
	char version[IB_PEER_MEMORY_VER_MAX];
	int (*acquire)(unsigned long addr, size_t size, void *private_data, char *peer_name,
		void **client_context);
	int (*get_pages)(unsigned long addr, size_t size, int write, int force,
		struct sg_table *sg_head, void *client_context, void *core_context);
	int (*dma_map)(struct sg_table *sg_head, void *client_context, struct device *dma_device,
		int dmasync, int *nmap);
	int (*dma_unmap)(struct sg_table *sg_head, void *client_context, struct device *dma_device);
	void (*put_pages)(struct sg_table *sg_head, void *client_context);
	unsigned long (*get_page_size)(void *client_context);
	void (*release)(void *client_context);
	void *(*get_context_private_data)(u64 peer_id);
	void (*put_context_private_data)(void *context);
};

typedef int (*invalidate_peer_memory)(void *reg_handle, void *core_context);

void *ib_register_peer_memory_client(
	struct peer_memory_client *peer_client, invalidate_peer_memory *invalidate_callback);
void ib_unregister_peer_memory_client(void *reg_handle);

/* What comes without further headers. */
static inline bool is_gpu(const struct amd_rdma_interface *of, unsigned long addr)
{
	return of->is_gpu_address(addr, get_task_pid(current, PIDTYPE_PID));
}

#define KFD_PRIV
#include "kfd.c"
