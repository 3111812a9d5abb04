/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics: on mapped memory the CPU's own; on memory that is not, a read-modify-write by the mover
 * under one token word per target process.  The word is recovered from a dead holder by weftd;
 * while a stopped process holds it, atomics on that one target are retried later and nobody waits.
 */
#pragma once

#include "hca/exec/exec_op.h"
#include "pages/mover.h"

/* Takes the word of the target's segment, after a short spin; false: try again later. */
bool atomic_op_begin(struct exec *x, struct seg *target);
void atomic_op_end(struct exec *x, struct seg *target);

/* Writes a word there, all of it at once. */
enum move_result atomic_op_write(struct work *w, uint64_t va, uint64_t word);
/* Applies w's operation to a word that this process maps; its value before. */
uint64_t atomic_op_mapped(const struct work *w, _Atomic uint64_t *word);

/* Applies w's operation at va of the responder's process; *before gets the old value. */
enum move_result atomic_op_apply(struct work *w, uint64_t va, uint64_t *before);
