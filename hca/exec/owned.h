/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two ways to owned memory (MR_OWNED), which only functions of its process reach.  A worker of
 * that process calls them, in steps through a buffer of its own; requests of peers ask its agent,
 * as where the kernel refuses cma, from their lanes.  A thread that posts, polls or helps calls
 * none and asks nobody: it leaves the request to one of those (MOVE_LATER).
 */
#pragma once

#include "hca/exec/way.h"

/*
 * Owned memory of this process: n bytes at addr, which begins at the region's iova, of the region
 * with that key.  0; -ENOENT: there is no such region (any more); -ERANGE: it does not cover them;
 * else what the kind of memory answered.  May block.  The caller's exec slot names this process, so
 * that a region in use stays.
 */
struct owned_calls {
	int (*read)(uint32_t key, uint64_t addr, void *to, uint64_t n);
	int (*write)(uint32_t key, uint64_t addr, const void *from, uint64_t n);
	/*
	 * Adds a to the word there, or replaces it by b if it is a; *old: what it was.  The caller
	 * holds the process's atomic word.
	 */
	int (*update)(uint32_t key, uint64_t addr, bool add, uint64_t a, uint64_t b, uint64_t *old);
};

/*
 * Reads all of p, owned memory of this process under the regions of held, into to; p is consumed.
 * MOVE_FAULT_*: one of them is gone, or refused it.
 */
enum move_result owned_gather(
	struct work *w, struct payload *p, const struct held *held, uint8_t *to);

/* The row for this process's own; as struct way has them.  later: it notes that a worker can. */
enum move_result owned_move(
	struct work *w, struct payload *src, struct payload *dst, const struct held *held);
enum move_result owned_update(
	struct work *w, struct payload *target, const struct held *held, uint64_t *before);
enum move_result owned_store(
	struct work *w, struct payload *target, const struct held *held, uint64_t word);
enum move_result owned_persist(
	struct work *w, struct payload *range, const struct held *held, enum durability kind);
bool owned_later(struct work *w);

/* The row for that of another one. */
enum move_result owner_move(
	struct work *w, struct payload *src, struct payload *dst, const struct held *held);
enum move_result owner_update(
	struct work *w, struct payload *target, const struct held *held, uint64_t *before);
enum move_result owner_store(
	struct work *w, struct payload *target, const struct held *held, uint64_t word);
bool owner_later(struct work *w);
