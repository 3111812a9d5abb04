/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a scenario may take: 2 s of its own without a call, or 2 s of computing.  A machine with
 * other things to do is not held against it: the time in which its threads could run, and waited
 * for a CPU, does not count.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct patience {
	pid_t pid;
	uint64_t begun;
	uint64_t since,
		waited; /* when a call was last made, and what its threads had waited then */
	unsigned calls; /* by then */
};

void patience_begin(struct patience *p, pid_t pid);

/* It has made so many calls by now.  True: it hangs. */
bool patience_ends(struct patience *p, unsigned calls);
