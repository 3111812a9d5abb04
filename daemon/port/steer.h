/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which queue pair numbers go to which socket of the group, from the blocks that are leased: the
 * ranges of each process that has a seat.  What is in none goes to seat 0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/tables/leases.h"
#include "roce/port/steer.h"

struct wire_group;

enum { STEER_RANGES_MAX = STEER_CODE_MAX / 2 };

/* The seat of a process, 0: it has none. */
typedef uint32_t (*wire_seat_of)(void *arg, uint32_t attach_id);

struct wire_ranges {
	struct steer_range at[STEER_RANGES_MAX]; /* in order */
	size_t n;
	uint32_t left_out; /* ranges for which there was no room */
};

/* Neighbouring blocks of one process are one range.  Pure; r need not be zeroed. */
void wire_ranges_make(
	struct wire_ranges *r, const struct leases *l, wire_seat_of seat_of, void *arg);

/*
 * Attaches the program for these ranges to the group; of what a program or the kernel has no room
 * for (net.core.optmem_max), the last ranges are left out.  0, or -errno: the old one stays.
 */
int wire_ranges_attach(struct wire_ranges *r, const struct wire_group *g);
