/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics and ATOMIC WRITE. */
#pragma once

#include "hca/exec/way.h"

/* Each executes w; the responder is ready. */
enum step op_atomic(struct work *w);
enum step op_atomic_write(struct work *w);

/*
 * The responder's half: an atomic on target, the last that held allows, *word being what it was; of
 * an ATOMIC WRITE *word is what goes there.  Results as carry(); MOVE_LATER only where
 * way_is_later() said so.
 */
enum move_result atomic_carry_out(
	struct work *w, struct payload *target, const struct held *held, uint64_t *word);
