/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For the peer client that is a part of AMD's own kernel module, kfd_peerdirect.c: what that one
 * would start and end is a module here.
 */
#pragma once

#include <linux/module.h>

/* That one has a structure of the first generation of its own; others include theirs before. */
#ifndef PEER_MEM_NUMBER
extern const char weft_peer_generation[2];
__attribute__((weak, visibility("default"))) const char weft_peer_generation[2] = "A";
#endif

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
