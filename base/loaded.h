/* SPDX-License-Identifier: BSD-3-Clause */
/* Which libraries the process has loaded. */
#pragma once

#include <stdbool.h>

/*
 * Is a library of that soname loaded?  Looks at what is loaded alone, about 1 us: dlopen() with
 * RTLD_NOLOAD first looks for its file in every folder, some 200 us where there is none.
 */
bool loaded_has(const char *soname);
