// SPDX-License-Identifier: BSD-3-Clause
/* Scatter tables, and the bus as a process sees it: addresses are its own. */
#include <errno.h>
#include <linux/dma-mapping.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <string.h>

#include "kshim/hook.h"

KSHIM_EXPORT void sg_init_table(struct scatterlist *sg, unsigned int n)
{
	memset(sg, 0, n * sizeof *sg);
	sg_mark_end(&sg[n - 1]);
}

KSHIM_EXPORT int sg_alloc_table(struct sg_table *t, unsigned int n, gfp_t flags)
{
	memset(t, 0, sizeof *t);
	if (!n)
		return -EINVAL;
	t->sgl = kcalloc(n, sizeof *t->sgl, flags);
	if (!t->sgl)
		return -ENOMEM;
	sg_init_table(t->sgl, n);
	t->nents = t->orig_nents = n;
	return 0;
}

KSHIM_EXPORT void sg_free_table(struct sg_table *t)
{
	kfree(t->sgl);
	memset(t, 0, sizeof *t);
}

KSHIM_EXPORT int dma_map_sg_attrs(struct device *dev, struct scatterlist *sg, int n,
	enum dma_data_direction dir, unsigned long attrs)
{
	const bool fails = hook_before("dma_map_sg");

	(void)dev;
	(void)dir;
	(void)attrs;
	for (int i = 0; i < n && !fails; i++) {
		sg[i].dma_address = (unsigned long)sg_page(&sg[i]) + sg[i].offset;
		sg[i].dma_length = sg[i].length;
	}
	return hook_after("dma_map_sg", fails ? 0 : n);
}

KSHIM_EXPORT void dma_unmap_sg_attrs(struct device *dev, struct scatterlist *sg, int n,
	enum dma_data_direction dir, unsigned long attrs)
{
	(void)dev;
	(void)sg;
	(void)n;
	(void)dir;
	(void)attrs;
}

KSHIM_EXPORT dma_addr_t dma_map_resource(struct device *dev, phys_addr_t addr, size_t size,
	enum dma_data_direction dir, unsigned long attrs)
{
	const bool fails = hook_before("dma_map_resource");

	(void)dev;
	(void)size;
	(void)dir;
	(void)attrs;
	hook_after("dma_map_resource", 0);
	return fails ? ~(dma_addr_t)0 : addr;
}

KSHIM_EXPORT void dma_unmap_resource(struct device *dev, dma_addr_t addr, size_t size,
	enum dma_data_direction dir, unsigned long attrs)
{
	(void)dev;
	(void)addr;
	(void)size;
	(void)dir;
	(void)attrs;
}
