/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DMA windows: memory of a device that the CPU cannot load from, reached by functions.  An address
 * that a peer client (<rdma/peer_mem.h>) puts into its table is an address of the process, unless
 * it lies in such a window: then it means the byte at that offset of what the window's functions
 * reach.  The functions are in Weft's libibverbs.so.1 (version node WEFT_1.0); weft_peer(3) says
 * the same at length.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum weft_dma_flags {
	/*
	 * The functions take no lock and wait for nothing, so that threads of the program that post
	 * work requests, or poll, call them, too, where that is faster.
	 */
	WEFT_DMA_ANY_THREAD = 1,
};

enum weft_dma_atomic {
	WEFT_DMA_FETCH_ADD = 0, /* adds a */
	WEFT_DMA_CMP_SWAP = 1,  /* puts b there if it is a */
};

/*
 * Offsets count bytes from the window's beginning; [off, off+n) lies within it.  Each answers 0 or
 * -errno: then the request fails as if the memory were not there.  They are called by threads of
 * Weft, several at a time, with signals blocked and some 100 KiB of stack; for datagrams that
 * arrived, and for all with WEFT_DMA_ANY_THREAD, by threads of the program, too, as those are.
 * Without that flag they may wait for the device.  They may take their memory away by the client's
 * callback; they call no verbs.
 */
struct weft_dma_ops {
	size_t size; /* of this structure: what lies behind it counts as NULL */
	/*
	 * src is free when it returns; the bytes may arrive by flush.  8 bytes that are aligned and
	 * come alone arrive at once.
	 */
	int (*copy_to)(void *priv, uint64_t off, const void *src, size_t n);
	int (*copy_from)(void *priv, uint64_t off, void *dst, size_t n); /* dst is complete */
	/* All that copy_to was given has arrived.  NULL: it had when copy_to returned. */
	int (*flush)(void *priv);
	/*
	 * op, enum weft_dma_atomic, on the aligned word at off; *old: what it was.  NULL: copy_from
	 * and copy_to, which is atomic among requests of the HCA alone.
	 */
	int (*atomic64)(void *priv, uint64_t off, int op, uint64_t a, uint64_t b, uint64_t *old);
};

/*
 * Adds a window of len bytes, whole pages of 4096.  *bus: where it begins, a multiple of 4096, or
 * 0, and Weft chooses.  The range is address space that nobody else gets and that cannot be
 * touched.  flags: enum weft_dma_flags.  ops is copied; priv is what the functions get.
 *
 * 0; -EINVAL: no function to copy, unknown flags, an empty or wrapping range, not whole pages;
 * -EEXIST: something is at *bus; -ENOMEM: no memory, or no such address space.
 */
int weft_dma_window_add(
	uint64_t *bus, uint64_t len, unsigned flags, const struct weft_dma_ops *ops, void *priv);

/*
 * Removes the window that begins at bus; none of its functions is called afterwards.  0; -ENOENT:
 * there is none; -EBUSY: a region uses it.  When dma_unmap is called, or the callback that takes a
 * region away has returned, that region uses it no longer.
 */
int weft_dma_window_del(uint64_t bus);

#ifdef __cplusplus
}
#endif
