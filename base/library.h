/* SPDX-License-Identifier: BSD-3-Clause */
/* What lies in a library that dlopen() gave. */
#pragma once

#include <stdbool.h>

/* Does that address lie in that library itself, and not in one that it needs? */
bool library_has(void *library, const void *address);

/*
 * dlsym() of a symbol that the library itself defines.  NULL: it does not; one that it needs may
 * have the name, as libc has init_module.
 */
void *library_own(void *library, const char *name);
