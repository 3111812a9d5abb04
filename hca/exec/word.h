/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics and ATOMIC WRITE, by way (hca/exec/way.h).  On mapped memory everybody, its owner too,
 * uses the CPU's own atomics, and never anything else; on memory that is not, a read-modify-write
 * by the mover under one token word per target process.  The word is recovered from a dead holder
 * by weftd; while a stopped process holds it, atomics on that one target are retried later and
 * nobody waits.
 */
#pragma once

#include "hca/exec/way.h"

/* Takes the word of the target's segment, after a short spin; false: try again later. */
bool word_lock(struct exec *x, struct seg *target);
void word_unlock(struct exec *x, struct seg *target);

/* What w's operation makes of a word. */
uint64_t word_after(const struct work *w, uint64_t old);

/*
 * Applies w's operation to target, the word that the last region of held allows, in memory of this
 * process, memory that is mapped here, or by calls or an agent; *before gets the old value.
 * MOVE_BUSY: nothing was done, try again soon; MOVE_REFUSED: it cannot be done so.
 */
enum move_result word_update_here(
	struct work *w, struct payload *target, const struct held *held, uint64_t *before);
enum move_result word_update_shared(
	struct work *w, struct payload *target, const struct held *held, uint64_t *before);
enum move_result word_update_cma(
	struct work *w, struct payload *target, const struct held *held, uint64_t *before);
enum move_result word_update_agent(
	struct work *w, struct payload *target, const struct held *held, uint64_t *before);

/* The same for writing it. */
enum move_result word_store_here(
	struct work *w, struct payload *target, const struct held *held, uint64_t word);
enum move_result word_store_shared(
	struct work *w, struct payload *target, const struct held *held, uint64_t word);
enum move_result word_store_cma(
	struct work *w, struct payload *target, const struct held *held, uint64_t word);
enum move_result word_store_agent(
	struct work *w, struct payload *target, const struct held *held, uint64_t word);
