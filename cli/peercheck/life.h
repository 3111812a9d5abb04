/* SPDX-License-Identifier: BSD-3-Clause */
/* A region's life, as ibv_reg_mr and ibv_dereg_mr would have it: with an HCA that does nothing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct peer_region;

/* 0, and *out, which is live; NULL in *out: nobody claims it.  Else -errno: nothing is left. */
int life_begin(uint64_t addr, uint64_t length, struct peer_region **out);

/* A region as one that was possible, but only read; NULL: it is not, and that has been judged. */
struct peer_region *life_must_for_reading(uint64_t addr, uint64_t length);

/* Deregisters; NULL: does nothing. */
void life_end(struct peer_region *r);

/* What is held of the client's now. */
struct holdings {
	long pinned, objects, modules;
};

struct holdings life_holdings(void);

/*
 * Judges whether no more is held than at some time before; in: the function that left it, or NULL.
 * False: more is.
 */
bool life_judge(const struct holdings *before, const char *in, const char *when);

/* An allocation of the device's, its words marked.  Ends the scenario if the device has none. */
uint64_t life_alloc(uint64_t n);

/* A region that must be possible; NULL: it is not, and that has been judged. */
struct peer_region *life_must(uint64_t addr, uint64_t length);
