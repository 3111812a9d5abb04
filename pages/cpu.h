/* SPDX-License-Identifier: BSD-3-Clause */
/* What the CPU can, as far as it decides how bytes are copied. */
#pragma once

#include <stdbool.h>

enum cpu_feature {
	CPU_AVX = 1 << 1,
	CPU_FAST_STRINGS = 1 << 2,  /* ERMS: a string instruction copies large blocks best */
	CPU_SHORT_STRINGS = 1 << 3, /* FSRM: and short ones: the kernel copies all sizes by it */
};

/*
 * Has the CPU this feature?  False where there is no such thing.  Looked up once, as CPUID is slow
 * in virtual machines; a load and a branch afterwards.
 */
bool cpu_can(enum cpu_feature what);
