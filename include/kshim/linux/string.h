/* SPDX-License-Identifier: BSD-3-Clause */
/* Strings. */
#pragma once

#include_next <linux/string.h>

#include <stdio.h>
#include <string.h>

/* Copies src, cut to size - 1 bytes and terminated; the length of src. */
static inline size_t kshim_strlcpy(char *to, const char *src, size_t size)
{
	return (size_t)snprintf(to, size, "%s", src);
}

#define strlcpy kshim_strlcpy
#define strscpy kshim_strlcpy
