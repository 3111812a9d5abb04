/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a scenario may take: 2 s of its own.  A machine with other things to do is not held
 * against it: what counts is the time in which it computes, or in which all its threads sleep
 * and no call is made.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct patience {
	pid_t pid;
	uint64_t since; /* when something last happened */
	uint64_t begun;
	unsigned calls; /* by then */
};

void patience_begin(struct patience *p, pid_t pid);

/* It has made so many calls by now.  True: it hangs. */
bool patience_ends(struct patience *p, unsigned calls);
