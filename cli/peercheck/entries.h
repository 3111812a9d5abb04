/* SPDX-License-Identifier: BSD-3-Clause */
/* The table that dma_map filled in, and the bytes that it leads to. */
#pragma once

#include <stdint.h>

struct peer_region;
struct watched_region;

/* Judges the first nmap entries of r's table, and notes how much they cover. */
void entries_judge(struct watched_region *r, int nmap);

/* Judges whether that is enough, once the page size is known. */
void entries_judge_cover(const struct watched_region *r);

/* Fills n bytes of an allocation, a multiple of 8, so that each word tells where it is. */
void entries_mark(uint64_t addr, uint64_t n);

/*
 * Judges what the HCA reads of a live region, as below; the bytes stay as they are.
 */
void entries_judge_reading(
	struct peer_region *r, uint64_t addr, uint64_t length, uint64_t start, uint64_t n);

/*
 * Judges what the HCA reads of a live region, of length bytes from addr on, which lie in a marked
 * allocation of n bytes at start; and what the device sees of what the HCA writes there.
 */
void entries_judge_bytes(
	struct peer_region *r, uint64_t addr, uint64_t length, uint64_t start, uint64_t n);
