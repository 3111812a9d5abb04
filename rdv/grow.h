/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays that grow. */
#pragma once

#include <stddef.h>

/*
 * Makes room for one more in *array, which has room for *room elements of that size, n of them in
 * use; the array is the caller's, to be freed with free().  -ENOMEM: both are what they were.
 */
int grow(void **array, size_t *room, size_t n, size_t size);
