/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which socket of a SO_REUSEPORT group on UDP port 4791 a packet goes to: a classic BPF program
 * that looks at the destination queue pair number in the BTH.  It may be attached through any
 * socket of the group, before the first is bound, and replaced at any time.
 */
#pragma once

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

/* Queue pairs `first` to `last`, both included, are those of the index-th socket of the group. */
struct steer_range {
	uint32_t first, last;
	uint16_t index;
};

enum {
	STEER_ELSE = 0, /* the index of what is in no range */
	STEER_CODE_MAX = BPF_MAXINSNS,
};

/*
 * Writes the program for n ranges, which are sorted and do not overlap.  Returns its length in
 * instructions; -EINVAL: the ranges are not as they must be; -E2BIG: it needs more than max.
 */
int steer_program(const struct steer_range *, size_t n, struct sock_filter *code, size_t max);

/* Attaches a program to the group of a socket.  Negative errno: ENOMEM where optmem_max is small.
 */
int steer_attach(int fd, struct sock_filter *code, size_t len);
