/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For the peer client that is a part of AMD's own kernel module, kfd_peerdirect.c: what that one
 * would start and end is a module here.
 */
#pragma once

/* Which that one does not always name itself; the one that it calls came before the second. */
#ifndef AMD_RDMA_MAJOR
#define AMD_RDMA_MAJOR 1
#endif
#include <amd_rdma.h>
#include <linux/module.h>

/* The client's: registers it with the HCA, and ends that. */
void kfd_init_peer_direct(void);
void kfd_close_peer_direct(void);

static int __init kfd_priv_init(void)
{
	kfd_init_peer_direct();
	return 0;
}

static void __exit kfd_priv_exit(void)
{
	kfd_close_peer_direct();
}

module_init(kfd_priv_init);
module_exit(kfd_priv_exit);
