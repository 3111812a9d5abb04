/* SPDX-License-Identifier: BSD-3-Clause */
/* NVIDIA's interface as a client's own header: as much as the sample client needs. */
#ifndef _NV_P2P_H_ /* the guard of those that clients bring */
#define _NV_P2P_H_

#include <linux/types.h>

struct pci_dev;

struct nvidia_p2p_page_table; /* of the version that the driver has */

struct nvidia_p2p_dma_mapping {
	uint32_t version;
	uint32_t page_size_type;
	uint32_t entries;
	uint64_t *dma_addresses;
	void *private;
	struct pci_dev *pci_dev;
};

int nvidia_p2p_get_pages_persistent(uint64_t virtual_address, uint64_t length,
	struct nvidia_p2p_page_table **page_table, uint32_t flags);
int nvidia_p2p_put_pages_persistent(
	uint64_t virtual_address, struct nvidia_p2p_page_table *page_table, uint32_t flags);
int nvidia_p2p_dma_map_pages(struct pci_dev *peer, struct nvidia_p2p_page_table *page_table,
	struct nvidia_p2p_dma_mapping **dma_mapping);
int nvidia_p2p_dma_unmap_pages(struct pci_dev *peer, struct nvidia_p2p_page_table *page_table,
	struct nvidia_p2p_dma_mapping *dma_mapping);

#endif
