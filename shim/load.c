// SPDX-License-Identifier: BSD-3-Clause
#include "shim/load.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

static const void *ask(void *loaded, const char *symbol)
{
	const void *(*table)(void) = loaded ? dlsym(loaded, symbol) : NULL;

	return table ? table() : NULL;
}

const void *load_found(const char *library, const char *symbol)
{
	int saved = errno;
	const void *found = ask(dlopen(library, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE), symbol);

	errno = saved;
	return found;
}

/* The library that lies beside this one. */
static void *load_beside(const char *library)
{
	char path[PATH_MAX];
	const char *slash;
	Dl_info us;

	if (!dladdr((const void *)load_beside, &us) || !(slash = strrchr(us.dli_fname, '/')))
		return NULL;
	if (snprintf(path, sizeof path, "%.*s/%s", (int)(slash - us.dli_fname), us.dli_fname,
		    library) >= PATH_MAX)
		return NULL;
	return dlopen(path, RTLD_NOW | RTLD_NODELETE);
}

const void *load_table(const char *library, const char *symbol)
{
	const void *found = load_found(library, symbol);
	int saved = errno;
	const char *why;

	if (!found)
		found = ask(load_beside(library), symbol);
	if (!found)
		found = ask(dlopen(library, RTLD_NOW | RTLD_NODELETE), symbol);
	if (!found) {
		why = dlerror();
		log_line(LOG_LVL_ERROR, "%s: the device cannot be opened: %s", library,
			why ? why : "it is not Weft's");
	}
	errno = saved;
	return found;
}
