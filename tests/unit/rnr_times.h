/* SPDX-License-Identifier: BSD-3-Clause */
/* The times of RNR NAKs as volume 1 prints them (table 45): in ms, by the code. */
#pragma once

#include <stdint.h>

static const double rnr_ms[32] = {655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24,
	0.32, 0.48, 0.64, 0.96, 1.28, 1.92, 2.56, 3.84, 5.12, 7.68, 10.24, 15.36, 20.48, 30.72,
	40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52};

static inline uint64_t rnr_ns(unsigned code)
{
	return (uint64_t)(rnr_ms[code] * 100 + 0.5) * 10000;
}
