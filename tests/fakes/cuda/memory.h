/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fake driver's memory: addresses that nobody can load from, over stores that lie elsewhere.
 * What was freed is given out again first, so that whoever still uses an address meets another's
 * bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct CUctx_st;

/* n bytes, all of one allocation, from or to device memory.  False: there is no such memory. */
bool memory_write(uint64_t to, const void *from, size_t n);
bool memory_read(void *to, uint64_t from, size_t n);

/* It was made by cuMemHostAlloc(). */
bool memory_is_pinned(const void *at, size_t n);

/* Frees what belongs to that context. */
void memory_lose(const struct CUctx_st *c);
