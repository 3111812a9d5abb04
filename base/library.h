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

/*
 * Calls its own init_module(), the name that module_init() of the kernel gives, as a loader of
 * kernel modules would.  What that answers; 0 if it has none.
 */
int library_init(void *library);
