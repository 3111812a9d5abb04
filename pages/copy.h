/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copy kernels.  What a program may watch while it is written (the target of an RDMA WRITE) is
 * copied by these and not by memcpy(), which promises no order:
 *
 * - the last bytes become visible last: whoever sees the last word (or the last byte) of the
 *   destination sees everything before it;
 * - an aligned word of 8 bytes of the destination is stored whole, never in parts, if the copy
 *   covers it; likewise the aligned 4 and 2 bytes at either end.
 *
 * Sizes from 0 to the whole address space, any alignment.  If the two ranges overlap the result
 * is that of memmove() and neither promise holds.
 */
#pragma once

#include <stdint.h>

/* Copies of at least so many bytes do not fit the caches: copy_stream() pays (measured). */
enum { COPY_STREAM_MIN = 8 << 20 };

/* Copies len bytes; what was copied stays in the caches. */
void copy_ordered(void *to, const void *from, uint64_t len);

/*
 * The same past the caches, for a step of a transfer of COPY_STREAM_MIN bytes or more.  Steps of
 * less than two pages, and CPUs without such stores, fall back to copy_ordered().
 */
void copy_stream(void *to, const void *from, uint64_t len);
