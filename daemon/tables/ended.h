/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes that ended last, and what they had counted, for who asks afterwards. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "hca/seg/seg.h"

enum { ENDED_KEPT = 64 };

struct ended_process {
	uint32_t attach_id;
	pid_t pid; /* in our pid namespace, 0 if it had none there */
	char comm[16];
	uint64_t when;                      /* CLOCK_MONOTONIC ns */
	uint64_t count[CTR_COUNT];          /* by enum seg_counter */
	uint64_t not_mapped[SHARE_REASONS]; /* by enum share_reason */
};

struct ended {
	struct ended_process at[ENDED_KEPT]; /* number n is at n % ENDED_KEPT */
	uint64_t n;                          /* that have ended so far */
};

/*
 * A row for a process that ends now, in place of the one that ended longest ago if ENDED_KEPT are
 * there.  Has what the segment counted, whatever that is; who it was the caller fills in.
 */
struct ended_process *ended_add(struct ended *e, const struct seg *seg);

/* The process that ended last is 0, the one before it 1, and so on.  NULL: it is not kept. */
const struct ended_process *ended_at(const struct ended *e, uint32_t back);
