/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers that nobody can guess, whatever he has seen of others: the kernel's, many at a time, so
 * that a number is no system call.  A byte costs some 6 ns.  A forked child draws its own.  Any
 * thread; does not block.
 */
#pragma once

#include <stdint.h>

uint32_t draw_u32(void);
uint8_t draw_u8(void);

/* From 0 to n - 1; n is not 0. */
uint32_t draw_below(uint32_t n);
