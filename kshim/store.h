/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of a fake GPU: pages of 64 KiB, given to allocations in scattered order, at addresses
 * that no load or store reaches.  On the bus they lie in a DMA window, where the program has Weft's
 * libibverbs.so.1; elsewhere at plain addresses of their own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STORE_PAGE = 65536 };

/* As the functions of struct weft_peer_device. */
int store_alloc(size_t n, uint64_t *addr);
int store_write(uint64_t addr, const void *from, size_t n);
int store_read(uint64_t addr, void *to, size_t n);

/* The allocation that begins at addr goes; pages that are held stay until they are let go. */
int store_free(uint64_t addr);

/* How many bytes the allocation at addr has; 0: none begins there. */
uint64_t store_size(uint64_t addr);

/* All of the range is of one allocation that is there. */
bool store_has(uint64_t addr, uint64_t n);

/*
 * Holds the pages from addr, a multiple of 64 KiB, on, and gives the bus address of each in bus, of
 * n / 64 KiB.  0; -EINVAL: not one allocation's; -ENOMEM: the BAR has no room.
 */
int store_hold(uint64_t addr, uint64_t n, uint64_t *bus);

/* Lets n pages go, by what store_hold() gave. */
void store_drop(const uint64_t *bus, unsigned n);
