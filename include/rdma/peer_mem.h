/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peer memory clients: memory of a device, such as a GPU, as memory of the HCA.  A client registers
 * its functions; whenever a program registers memory the clients are asked, in the order in which
 * they came, whether it is theirs.  Structures and prototypes are those of MLNX_OFED's peer memory
 * API of December 2013; docs/peermem.md says in which order the functions are called.
 *
 * -DPEER_MEM_GENERATION=X chooses the API of later releases, for clients written to them.  On LP64
 * all are called alike, so a program may have clients of several generations.
 *
 *	A	2.1 to 3.4, the default: a core context is a void *
 *	B	4.0: a core context is a u64; clients are const
 *	C	4.1 to 5.0: two functions more at the end of the structure
 *	D	5.1: without these
 *	E	5.4 and later: struct peer_memory_client_ex, with flags
 */
#ifndef PEER_MEM_H
#define PEER_MEM_H

#include <stddef.h>

#ifndef PEER_MEM_GENERATION
#define PEER_MEM_GENERATION A
#endif
#define PEER_MEM_NUMBER_A         1
#define PEER_MEM_NUMBER_B         2
#define PEER_MEM_NUMBER_C         3
#define PEER_MEM_NUMBER_D         4
#define PEER_MEM_NUMBER_E         5
#define PEER_MEM_NUMBER__(letter) PEER_MEM_NUMBER_##letter
#define PEER_MEM_NUMBER_(letter)  PEER_MEM_NUMBER__(letter)
/* The generation as a number, 1 to 5. */
#define PEER_MEM_NUMBER PEER_MEM_NUMBER_(PEER_MEM_GENERATION)

#if PEER_MEM_NUMBER < 1
#error "PEER_MEM_GENERATION is one of A, B, C, D, E"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define IB_PEER_MEMORY_NAME_MAX 64
#define IB_PEER_MEMORY_VER_MAX  16

/*
 * Of the kernel's headers, for programs that have none of them.  Who has his own defines
 * PEER_MEM_KERNEL_TYPES.
 */
#ifndef PEER_MEM_KERNEL_TYPES
typedef unsigned int u32;
typedef unsigned long long u64;
#ifndef _LINUX_SCATTERLIST_H
typedef u64 dma_addr_t;

struct scatterlist {
	unsigned long page_link; /* what follows is read of no entry but dma_address, dma_length */
	unsigned int offset;
	unsigned int length;
	dma_addr_t dma_address;
	unsigned int dma_length;
};

struct sg_table {
	struct scatterlist *sgl; /* an array of nents */
	unsigned int nents;
	unsigned int orig_nents;
};
#endif
#endif

struct device; /* opaque: that of the HCA; passed to dma_map and dma_unmap */

#if PEER_MEM_NUMBER == 1
typedef int (*invalidate_peer_memory)(void *reg_handle, void *core_context);
#else
#define PEER_MEM_U64_CORE_CONTEXT
typedef int (*invalidate_peer_memory)(void *reg_handle, u64 core_context);
#endif

/*
 * What a client registers.  acquire says 1 if all of [addr, addr+size) is the client's, else 0, and
 * sets *client_context, which the others get.  get_pages pins; dma_map sets dma_address and
 * dma_length of the first *nmap entries, each of whole pages of 4096 bytes, from the page of addr
 * on: as an address of this process.  Both, and dma_unmap, answer 0 or -errno.  The table is the
 * client's: it allocates and frees the entries, and gets the structure back as it left it.
 */
struct peer_memory_client {
	char name[IB_PEER_MEMORY_NAME_MAX];
	char version[IB_PEER_MEMORY_VER_MAX];
	int (*acquire)(unsigned long addr, size_t size, void *peer_mem_private_data,
		char *peer_mem_name, void **client_context);
#if PEER_MEM_NUMBER == 1
	int (*get_pages)(unsigned long addr, size_t size, int write, int force,
		struct sg_table *sg_head, void *client_context, void *core_context);
#else
	int (*get_pages)(unsigned long addr, size_t size, int write, int force,
		struct sg_table *sg_head, void *client_context, u64 core_context);
#endif
	int (*dma_map)(struct sg_table *sg_head, void *client_context, struct device *dma_device,
		int dmasync, int *nmap);
	int (*dma_unmap)(struct sg_table *sg_head, void *client_context, struct device *dma_device);
	void (*put_pages)(struct sg_table *sg_head, void *client_context);
	unsigned long (*get_page_size)(void *client_context);
	void (*release)(void *client_context);
#if PEER_MEM_NUMBER == 3
	void *(*get_context_private_data)(u64 peer_id);  /* never called */
	void (*put_context_private_data)(void *context); /* never called */
#endif
};

#if PEER_MEM_NUMBER == 5
enum {
	/* The client unmaps by itself after its callback, instead of dma_unmap and put_pages. */
	PEER_MEM_INVALIDATE_UNMAPS = 1 << 0,
};

/* Registered as its client, whose version must have a last byte (of 16) that is not 0. */
struct peer_memory_client_ex {
	struct peer_memory_client client;
	size_t ex_size; /* of this structure */
	u32 flags;
};
#endif

/*
 * Registers a client; the structure stays its own, is not changed, and may go away.  name must be
 * unique.  If invalidate_callback is not NULL the client may take memory away: *invalidate_callback
 * becomes the function that it calls with its handle and the core_context of get_pages; when that
 * has returned nobody accesses the memory any more.  Returns a handle, or NULL, with the reason in
 * the log: a function is missing (all but get_page_size and release must be there), the name is
 * empty, unterminated or taken, or a client's acquire is running in this thread.
 */
#if PEER_MEM_NUMBER == 1
void *ib_register_peer_memory_client(
	struct peer_memory_client *peer_client, invalidate_peer_memory *invalidate_callback);
#else
void *ib_register_peer_memory_client(
	const struct peer_memory_client *peer_client, invalidate_peer_memory *invalidate_callback);
#endif

/*
 * Ends it.  Waits a second for the client's regions to be deregistered, then takes their memory
 * away, with a line in the log; afterwards none of the client's functions is called.  Refused, with
 * a line in the log, in a thread that is inside one of the client's functions.
 */
void ib_unregister_peer_memory_client(void *reg_handle);

#ifdef __cplusplus
}
#endif

#endif
