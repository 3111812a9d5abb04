/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DMA windows of this process, by their bus addresses.  weft_dma_window_add() and
 * weft_dma_window_del() are here, too: <weft/peer.h> has their contracts.  A region finds its
 * windows once, when its client has mapped it, and holds them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "include/weft/peer.h"

struct peer_window {
	uint64_t bus, length;
	unsigned flags;
	struct weft_dma_ops ops; /* whole: what the client's was too short for is NULL */
	void *priv;
	unsigned holds; /* of pieces of regions, under the lock of window.c */
};

/*
 * The window in which [bus, bus+length) lies, in *out: held until peer_window_put(); NULL: it
 * meets none.  -EINVAL: it lies in one partly.
 */
int peer_window_get(uint64_t bus, uint64_t length, struct peer_window **out);

/* Lets go of it; NULL: does nothing. */
void peer_window_put(struct peer_window *w);

/*
 * In a forked child: it has none.  Their address space stays taken; who still has a pointer to one
 * may look at it.
 */
void peer_window_forked_child(void);
