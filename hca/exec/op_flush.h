/* SPDX-License-Identifier: BSD-3-Clause */
/* FLUSH. */
#pragma once

#include "hca/exec/way.h"

/*
 * Executes w; the responder is ready.  Whatever this QP wrote before is in place already, visible
 * to all: the copies were made by a CPU, in the order of the queue.  What is left for the global
 * type are the checks, and a fence for copies within the process.
 */
enum step op_flush(struct work *w);

/* The responder's half: the range that w is about, the one given or the whole region, in *p. */
bool flush_range(struct work *w, struct payload *p, struct held *held);

/* Makes it visible and, if w says so, durable: as persist_range(). */
enum move_result flush_carry_out(struct work *w, struct payload *range, const struct held *held);
