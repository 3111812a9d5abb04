/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's memory by addresses that may be bad, as a kernel sees it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Copies n bytes from the program's memory, or to it.  0 or -EFAULT; then some may be copied. */
int user_get(void *to, uint64_t from, size_t n);
int user_put(uint64_t to, const void *from, size_t n);
