/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdint.h>

/*
 * For how many nanoseconds a thread that waits for another process spins before it sleeps: usual,
 * or what WEFT_SPIN_US says, which is read once; a bad value is logged and counts as not there.  0
 * on a single CPU, where the other one cannot go on meanwhile.
 */
uint64_t spin_limit_ns(uint64_t usual);

/*
 * Reads WEFT_SPIN_US, and tells of a bad value, before it is needed.  It does not count the CPUs:
 * that opens a file of sysfs.
 */
void spin_check(void);
