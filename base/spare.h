/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks of memory that are used again, so that what comes and goes all the time needs no memory
 * that has to be found first.  All of a store have the same size, at least a pointer's.  All zero:
 * none.  One thread at a time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct spare {
	void *first; /* each begins with the address of the next */
	uint32_t n;
};

/* A block of that size, not zeroed, which spare_put() or free() takes back; NULL: no memory. */
void *spare_get(struct spare *, size_t size);

/* Takes a block back, or frees it where `most` lie in the store already. */
void spare_put(struct spare *, void *block, uint32_t most);

/* Frees what lies in it. */
void spare_free(struct spare *);
