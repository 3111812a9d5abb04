/* SPDX-License-Identifier: BSD-3-Clause */
/* The median of measurements. */
#pragma once

#include <stdlib.h>

static inline int median_order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Of n > 0 values, which it sorts. */
static inline double median(double *v, size_t n)
{
	qsort(v, n, sizeof *v, median_order);
	return v[n / 2];
}
