/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way to memory under the power-failure simulator: what is written there is noted first, and so
 * are the READs and FLUSHes that may make it durable.  All that changes one process's memory is
 * done under its atomic token, so that the order of the records is that of the writes.  Who does
 * not keep that process's journal is refused what he would have to note (MOVE_REFUSED); his READs
 * and FLUSHes go on, and make nothing durable.  Regions of such a process that are not marked are
 * reached as without it.
 */
#pragma once

#include "hca/exec/way.h"

/* The row of ways; each goes on by the way that p->under says. */
enum move_result journaled_move(
	struct work *w, struct payload *src, struct payload *dst, const struct held *held);
enum move_result journaled_update(
	struct work *w, struct payload *target, const struct held *held, uint64_t *before);
enum move_result journaled_store(
	struct work *w, struct payload *target, const struct held *held, uint64_t word);
void journaled_pushed(struct work *w);
