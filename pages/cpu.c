// SPDX-License-Identifier: BSD-3-Clause
#include "pages/cpu.h"

#include "base/atomic.h"

#if defined(__x86_64__)

#include <cpuid.h>

enum { ERMS_BIT = 1 << 9, FSRM_BIT = 1 << 4, KNOWN = 1 };

static unsigned look_up(void)
{
	unsigned a, b = 0, c, d = 0, found = KNOWN;

	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx"))
		found |= CPU_AVX;
	if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
		found |= b & ERMS_BIT ? CPU_FAST_STRINGS : 0;
		found |= d & FSRM_BIT ? CPU_SHORT_STRINGS : 0;
	}
	return found;
}

/* The same whoever comes first, so nothing is ordered by it. */
bool cpu_can(enum cpu_feature what)
{
	static _Atomic unsigned known;
	unsigned k = atomic_load_explicit(&known, memory_order_relaxed);

	if (!k) {
		k = look_up();
		atomic_store_explicit(&known, k, memory_order_relaxed);
	}
	return k & what;
}

#else

bool cpu_can(enum cpu_feature what)
{
	(void)what;
	return false;
}

#endif
