/* SPDX-License-Identifier: BSD-3-Clause */
/* Comes first in every file of hca/ that is explored: its clock is the model's. */
#pragma once

#include <time.h>

int model_clock_gettime(clockid_t clock, struct timespec *ts);
#define clock_gettime model_clock_gettime
