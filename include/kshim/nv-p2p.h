/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface of NVIDIA's kernel module to peer clients, with the names, layouts and values of
 * driver 595, over memory of a fake GPU: weft_kshim_device("nvidia") of <weft/peercheck.h>.
 */
#ifndef _NV_P2P_H_ /* as of the one that a client may bring */
#define _NV_P2P_H_

#include <linux/types.h>

struct pci_dev;

#define NVIDIA_P2P_PAGE_TABLE_VERSION  0x00020000
#define NVIDIA_P2P_DMA_MAPPING_VERSION 0x00020003
#define NVIDIA_P2P_MAJOR(version)      ((version) >> 16)
#define NVIDIA_P2P_MINOR(version)      ((version)&0xffff)
#define NVIDIA_P2P_VERSION_COMPATIBLE(p, v)                                                        \
	(NVIDIA_P2P_MAJOR((p)->version) == NVIDIA_P2P_MAJOR(v) &&                                  \
		NVIDIA_P2P_MINOR((p)->version) >= NVIDIA_P2P_MINOR(v))
#define NVIDIA_P2P_PAGE_TABLE_VERSION_COMPATIBLE(p)                                                \
	NVIDIA_P2P_VERSION_COMPATIBLE(p, NVIDIA_P2P_PAGE_TABLE_VERSION)
#define NVIDIA_P2P_DMA_MAPPING_VERSION_COMPATIBLE(p)                                               \
	NVIDIA_P2P_VERSION_COMPATIBLE(p, NVIDIA_P2P_DMA_MAPPING_VERSION)

#define NVIDIA_P2P_CAP_PERSISTENT_PAGES         1
#define NVIDIA_P2P_CAP_GET_PAGES_PERSISTENT_API 1
#define NVIDIA_P2P_FLAGS_DEFAULT                0

/* 1: get_pages() without a callback keeps the memory until put_pages(). */
extern const int nvidia_p2p_cap_persistent_pages;

enum nvidia_p2p_page_size_type {
	NVIDIA_P2P_PAGE_SIZE_4KB = 0,
	NVIDIA_P2P_PAGE_SIZE_64KB,
	NVIDIA_P2P_PAGE_SIZE_128KB,
	NVIDIA_P2P_PAGE_SIZE_COUNT
};

typedef struct nvidia_p2p_page {
	uint64_t physical_address;
	union {
		struct {
			uint32_t wreqmb_h, rreqmb_h, rreqmb_0, reserved[3];
		} fermi;
	} registers;
} nvidia_p2p_page_t;

typedef struct nvidia_p2p_page_table {
	uint32_t version;
	uint32_t page_size; /* enum nvidia_p2p_page_size_type */
	struct nvidia_p2p_page **pages;
	uint32_t entries;
	uint8_t *gpu_uuid;
	uint32_t flags;
} nvidia_p2p_page_table_t;

typedef struct nvidia_p2p_dma_mapping {
	uint32_t version;
	enum nvidia_p2p_page_size_type page_size_type;
	uint32_t entries;
	uint64_t *dma_addresses;
	void *private;
	struct pci_dev *pci_dev;
} nvidia_p2p_dma_mapping_t;

/*
 * Pins memory of the GPU: address and length are multiples of 64 KiB.  When the memory is freed
 * free_callback is called, and the table is gone once that has returned; without one (or by the
 * second function) the memory stays until it is put.  0; -EINVAL: not such memory; -ENOMEM: no
 * room in the BAR.
 */
int nvidia_p2p_get_pages(uint64_t p2p_token, uint32_t va_space, uint64_t virtual_address,
	uint64_t length, struct nvidia_p2p_page_table **page_table,
	void (*free_callback)(void *data), void *data);
int nvidia_p2p_get_pages_persistent(uint64_t virtual_address, uint64_t length,
	struct nvidia_p2p_page_table **page_table, uint32_t flags);

/* The opposite; -EINVAL: not pinned (any more). */
int nvidia_p2p_put_pages(uint64_t p2p_token, uint32_t va_space, uint64_t virtual_address,
	struct nvidia_p2p_page_table *page_table);
int nvidia_p2p_put_pages_persistent(
	uint64_t virtual_address, struct nvidia_p2p_page_table *page_table, uint32_t flags);

/*
 * In free_callback.  Old drivers leave the table and the mapping to the client, which frees them by
 * these; for present ones they do nothing.
 */
int nvidia_p2p_free_page_table(struct nvidia_p2p_page_table *page_table);
int nvidia_p2p_free_dma_mapping(struct nvidia_p2p_dma_mapping *dma_mapping);

/* Bus addresses of a table's pages, for the device peer. */
int nvidia_p2p_dma_map_pages(struct pci_dev *peer, struct nvidia_p2p_page_table *page_table,
	struct nvidia_p2p_dma_mapping **dma_mapping);
int nvidia_p2p_dma_unmap_pages(struct pci_dev *peer, struct nvidia_p2p_page_table *page_table,
	struct nvidia_p2p_dma_mapping *dma_mapping);

#endif
