/* SPDX-License-Identifier: BSD-3-Clause */
/* The runtime of a sanitizer, which wants to come first in its process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Which runtime has to be preloaded for a plug-in, whose whole file text is.  1: *to is it, by path
 * or by a name that the dynamic linker finds; 0: none; -ENOENT: *to names it, and it cannot be
 * found.
 */
int sanitizer_runtime(const char *text, size_t n, char *to, size_t size);

/*
 * Which one has to be preloaded for a program that needs the libraries names, each ended by a NUL,
 * and one more behind all.  True: *to is it, by path or by a name that the dynamic linker may find.
 * False: none.  A runtime within the program itself, as clang links it, is first without that, and
 * may not bear a second one.
 */
bool sanitizer_needed(const char *names, char *to, size_t size);
