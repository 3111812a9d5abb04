/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses on the bus: those of this process, which is its own IOMMU. */
#pragma once

#include <linux/device.h>
#include <linux/scatterlist.h>

enum dma_data_direction {
	DMA_BIDIRECTIONAL,
	DMA_TO_DEVICE,
	DMA_FROM_DEVICE,
	DMA_NONE,
};

#define DMA_ATTR_SKIP_CPU_SYNC         (1UL << 5)
#define DMA_BIT_MASK(n)                ((n) == 64 ? ~0ULL : (1ULL << (n)) - 1)
#define PCI_DMA_BIDIRECTIONAL          DMA_BIDIRECTIONAL
#define dma_map_sg(d, sg, n, dir)      dma_map_sg_attrs(d, sg, n, dir, 0)
#define dma_unmap_sg(d, sg, n, dir)    dma_unmap_sg_attrs(d, sg, n, dir, 0)
#define pci_map_sg(pdev, sg, n, dir)   dma_map_sg(&(pdev)->dev, sg, n, dir)
#define pci_unmap_sg(pdev, sg, n, dir) dma_unmap_sg(&(pdev)->dev, sg, n, dir)
#define dma_mapping_error(d, addr)     ((void)(d), (addr) == ~(dma_addr_t)0)

/* Sets the bus address of n entries from their pages: n, or 0 on failure. */
int dma_map_sg_attrs(struct device *dev, struct scatterlist *sg, int n, enum dma_data_direction dir,
	unsigned long attrs);
void dma_unmap_sg_attrs(struct device *dev, struct scatterlist *sg, int n,
	enum dma_data_direction dir, unsigned long attrs);

/* Something that is no memory, such as a BAR, on the bus. */
dma_addr_t dma_map_resource(struct device *dev, phys_addr_t addr, size_t size,
	enum dma_data_direction dir, unsigned long attrs);
void dma_unmap_resource(struct device *dev, dma_addr_t addr, size_t size,
	enum dma_data_direction dir, unsigned long attrs);
