/* SPDX-License-Identifier: BSD-3-Clause */
/* The runtime of a sanitizer, which wants to come first in its process. */
#pragma once

#include <stddef.h>

/*
 * Which runtime has to be preloaded for what is in text: a whole file, or the names of the
 * libraries that it needs.  1: *to is it, by path or by a name that the dynamic linker finds; 0:
 * none; -ENOENT: *to names it, and it cannot be found.
 */
int sanitizer_runtime(const char *text, size_t n, char *to, size_t size);
