/* SPDX-License-Identifier: BSD-3-Clause */
/* Scatter tables: entries in arrays, never in chains. */
#pragma once

#define _LINUX_SCATTERLIST_H

#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/types.h>

struct scatterlist {
	unsigned long page_link;
	unsigned int offset;
	unsigned int length;
	dma_addr_t dma_address;
	unsigned int dma_length;
};

struct sg_table {
	struct scatterlist *sgl;
	unsigned int nents;
	unsigned int orig_nents;
};

#define sg_dma_address(sg)                ((sg)->dma_address)
#define sg_dma_len(sg)                    ((sg)->dma_length)
#define for_each_sg(list, sg, n, i)       for (i = 0, sg = (list); i < (n); i++, sg = sg_next(sg))
#define for_each_sgtable_dma_sg(t, sg, i) for_each_sg((t)->sgl, sg, (int)(t)->nents, i)
#define for_each_sgtable_sg(t, sg, i)     for_each_sg((t)->sgl, sg, (int)(t)->orig_nents, i)

static inline struct scatterlist *sg_next(struct scatterlist *sg)
{
	return sg->page_link & 2 ? NULL : sg + 1;
}

static inline void sg_mark_end(struct scatterlist *sg)
{
	sg->page_link |= 2;
}

static inline struct page *sg_page(const struct scatterlist *sg)
{
	return (struct page *)(sg->page_link & ~3UL);
}

static inline void sg_assign_page(struct scatterlist *sg, struct page *page)
{
	sg->page_link = (sg->page_link & 3) | (unsigned long)page;
}

static inline void sg_set_page(
	struct scatterlist *sg, struct page *page, unsigned int length, unsigned int offset)
{
	sg_assign_page(sg, page);
	sg->offset = offset;
	sg->length = length;
}

/* n entries of 0, the last one marked.  0, -EINVAL: n is 0, or -ENOMEM. */
int sg_alloc_table(struct sg_table *t, unsigned int n, gfp_t flags);

/* Frees the entries. */
void sg_free_table(struct sg_table *t);

/* Makes n entries the beginning of a list of their own. */
void sg_init_table(struct scatterlist *sg, unsigned int n);
