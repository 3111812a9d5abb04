/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdint.h>

/*
 * Makes every page of [at, at+len), whole pages of writable memory, present and ready to be
 * written, without changing a byte, also while other threads write there.  Where the kernel
 * cannot be told to (before Linux 5.14), each page is touched by an atomic that changes nothing:
 * memory that is not there is a fault then.  Blocks for memory.  -errno: the kernel refused.
 */
int populate_write(uint64_t at, uint64_t len);
