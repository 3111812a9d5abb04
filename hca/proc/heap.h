/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Space in our own segment for rings.  Power-of-two size classes from 256 bytes; the pages of a
 * freed block of a page or more go back to the system, so that a block is zero when handed out.
 */
#pragma once

#include <stdint.h>

#include "hca/seg/seg.h"

/* Starts over with an empty heap in seg (a new attach). */
void heap_reset(struct seg *seg);

/* In a forked child, before anything else: the parent's other threads are gone. */
void heap_forked_child(void);

/* *off: offset of size zeroed bytes, aligned to 256 (a page if size is one or more). -ENOMEM. */
int heap_alloc(uint64_t size, uint64_t *off);

/* Gives it back; size as it was asked for.  off 0 is ignored. */
void heap_free(uint64_t off, uint64_t size);
