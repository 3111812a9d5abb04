/* SPDX-License-Identifier: BSD-3-Clause */
/* What the sample clients over NVIDIA's interface share: a table for the core from its pages. */
#pragma once

#include <linux/slab.h>
#include <nv-p2p.h>
#include <rdma/peer_mem.h>

#define GPU_PAGE 65536UL

/* One entry for each page, which the caller frees.  0 or -ENOMEM. */
static inline int nv_entries(const struct nvidia_p2p_dma_mapping *m, struct scatterlist **out)
{
	struct scatterlist *entries = kcalloc(m->entries, sizeof *entries, GFP_KERNEL);

	*out = entries;
	if (!entries)
		return -ENOMEM;
	sg_init_table(entries, m->entries);
	for (unsigned int i = 0; i < m->entries; i++) {
		sg_set_page(&entries[i], NULL, GPU_PAGE, 0);
		sg_dma_address(&entries[i]) = m->dma_addresses[i];
		sg_dma_len(&entries[i]) = GPU_PAGE;
	}
	return 0;
}
