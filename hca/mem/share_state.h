/* SPDX-License-Identifier: BSD-3-Clause */
/* The regions that peers may map, and what is known of them: the state of share.c and its parts. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "hca/mem/mr_set.h"
#include "hca/obj/mr.h"
#include "hca/seg/seg.h"

/* Its lock is held wherever another member is used, and for all calls below. */
struct share_state {
	struct lock lock;
	enum share_mode mode;
	struct mr_set set;
	uint32_t unused; /* conversions that ended with few operations, less those that paid */
	bool fork_watched;
	bool child_copies; /* at this fork something stays in the arena, for the child to copy */
};

extern struct share_state share;

/* mr's entry in the segment. */
struct seg_mr *share_entry(const struct hca_mr *mr);

/* Counts why something is not mapped. */
void share_count(enum share_reason why);

/* Notes that something which no region needs any more stays shared. */
void share_leave_behind(void);

/* What peers read of mr: how it is reached now. */
void share_set_state(const struct hca_mr *mr, enum mr_share state);

/* Notes, and counts, that mr is mapped in the arena, or no more. */
void share_set_mapped(struct hca_mr *mr, bool mapped);

/* The same of an object of the program's own, which is let go of. */
void share_set_backed(struct hca_mr *mr, bool backed);

/* Is it reached by loads and stores? */
bool share_by_loads(const struct hca_mr *mr);

/* How it is reached. */
enum mr_share share_state_of(const struct hca_mr *mr);

/* Calls fn (if any) for each part of [lo, hi) that no mapped region covers; their bytes. */
uint64_t share_each_gap(
	uint64_t lo, uint64_t hi, void (*fn)(uint64_t lo, uint64_t hi, void *arg), void *arg);
