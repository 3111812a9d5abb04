// SPDX-License-Identifier: BSD-3-Clause
/*
 * The client of nv_keep.c with the includes of NVIDIA's own client today: both interfaces lie
 * beside it, linux/sched.h and linux/scatterlist.h come with others, the build has found out
 * conftest.h.
 */
#include <linux/dma-mapping.h>
#include <linux/errno.h>
#include <linux/hugetlb.h>
#include <linux/init.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>

#include "conftest.h"
#include "nv-p2p.h"
#include "peer_mem.h"

#ifndef NV_MLNX_IB_PEER_MEM_SYMBOLS_PRESENT
#error "the kernel has no peer memory"
#endif

static const char version[] = NV_VERSION_STRING;
MODULE_VERSION(version);

static int depth;
module_param(depth, int, S_IRUGO);

/* What comes without further headers. */
static inline int uses(struct task_struct *of, struct sg_table *table)
{
	depth = of == current;
	printk(KERN_ERR "%s of %d\n", version, of->pid);
	BUG_ON(depth < 0);
	return sg_alloc_table(table, 1, GFP_KERNEL);
}

#include "../nv_keep.c"
