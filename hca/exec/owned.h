/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two ways to owned memory (MR_OWNED), which only functions of its process reach.  A worker of
 * that process calls them, or its agent: with the other end's bytes where they are, if they have an
 * address here, else in steps through a buffer of its own.  A thread that posts, polls or helps
 * calls those that any thread may call; for others it asks nobody: it leaves the request to a
 * worker or the agent (MOVE_LATER).
 *
 * A peer hands its queue over to the agent (w->for_owner), which runs it as a responder that helps
 * does: one copy, one wake-up.  What that one cannot reach (memory that functions of the peer's
 * reach, or that the kernel refuses to it; a shared receive queue of a third process) goes by the
 * peer's lane, which asks the agent to copy through a buffer between them.
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
	/* May any thread call these?  If there is no such region, too: they find none. */
	bool (*anywhere)(uint32_t key);
};

/*
 * Reads all of p, owned memory of this process under the regions of held, into to; p is consumed.
 * MOVE_FAULT_*: one of them is gone, or refused it.
 */
enum move_result owned_gather(
	struct work *w, struct payload *p, const struct held *held, uint8_t *to);

/* The row for this process's own; as struct way has them.  owned_later() notes that a worker can.
 */
enum move_result owned_move(
	struct work *w, struct payload *src, struct payload *dst, const struct held *held);
enum move_result owned_update(
	struct work *w, struct payload *target, const struct held *held, uint64_t *before);
enum move_result owned_store(
	struct work *w, struct payload *target, const struct held *held, uint64_t word);
enum move_result owned_persist(
	struct work *w, struct payload *range, const struct held *held, enum durability kind);
bool owned_later(struct work *w, const struct payload *p, const struct held *held);

/* The row for that of another one. */
enum move_result owner_move(
	struct work *w, struct payload *src, struct payload *dst, const struct held *held);
enum move_result owner_update(
	struct work *w, struct payload *target, const struct held *held, uint64_t *before);
enum move_result owner_store(
	struct work *w, struct payload *target, const struct held *held, uint64_t word);
bool owner_later(struct work *w, const struct payload *p, const struct held *held);
