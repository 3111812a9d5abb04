/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface of AMD's kernel module to peer clients, over memory of a fake GPU:
 * weft_kshim_device("kfd") of <weft/peercheck.h>.  Version 2 of it, with the device in get_pages,
 * is that of ROCm 4.2 and later; -DAMD_RDMA_MAJOR=1 gives the one before.
 */
#ifndef AMD_RDMA_H_ /* as of the one that a client may bring */
#define AMD_RDMA_H_

#include <linux/device.h>
#include <linux/pid.h>
#include <linux/scatterlist.h>
#include <linux/types.h>

#ifndef AMD_RDMA_MAJOR
#define AMD_RDMA_MAJOR 2
#endif
#define AMD_RDMA_MINOR 0

struct amd_p2p_info {
	uint64_t va, size;
	struct pid *pid;
	struct sg_table *pages; /* with bus addresses */
	void *priv;
};

/*
 * get_pages pins; free_callback is called when the memory is freed, and must not put it.  All give
 * 0 or -errno, but is_gpu_address: 1 or 0.
 */
struct amd_rdma_interface {
	int (*get_pages)(uint64_t address, uint64_t length, struct pid *pid,
#if AMD_RDMA_MAJOR >= 2
		struct device *dma_dev,
#endif
		struct amd_p2p_info **amd_p2p_data, void (*free_callback)(void *client_priv),
		void *client_priv);
	int (*put_pages)(struct amd_p2p_info **amd_p2p_data);
	int (*is_gpu_address)(uint64_t address, struct pid *pid);
	int (*get_page_size)(
		uint64_t address, uint64_t length, struct pid *pid, unsigned long *page_size);
};

/* 0, with the functions. */
#if AMD_RDMA_MAJOR >= 2
int amdkfd_query_rdma_interface(const struct amd_rdma_interface **rdma);
#else
int amdkfd_query_rdma_interface_v1(const struct amd_rdma_interface **rdma);
#define amdkfd_query_rdma_interface amdkfd_query_rdma_interface_v1
#endif

#endif
