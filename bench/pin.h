/* SPDX-License-Identifier: BSD-3-Clause */
/* For the two sides of a comparison: each on its own CPU, or no figure at all. */
#pragma once

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { SKIP = 77 };

/* Ends the program with SKIP where that CPU is not ours to use. */
static inline void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set) == 0)
		return;
	printf("cannot run on CPU %d\n", cpu);
	exit(SKIP);
}
