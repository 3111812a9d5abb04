// SPDX-License-Identifier: BSD-3-Clause
#include "scif/ep/share.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

static struct {
	bool there;
	struct share_calls calls;
} share;

static bool find(void *lib, const char *name, void *fn)
{
	void *found = dlsym(lib, name);

	memcpy(fn, &found, sizeof found);
	return found;
}

/* When the library is loaded: a later look-up could find no memory, and then what is there not. */
__attribute__((constructor)) static void look_up(void)
{
	void *lib = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);

	if (!lib)
		return;
	share.there = find(lib, "weft_share_export", &share.calls.export) &&
		      find(lib, "weft_share_close", &share.calls.close) &&
		      find(lib, "weft_share_map", &share.calls.map) &&
		      find(lib, "weft_share_unmap", &share.calls.unmap);
	find(lib, "weft_share_second", &share.calls.second);
	dlclose(lib); /* we are linked with it: it stays */
}

const struct share_calls *share_calls(void)
{
	return share.there ? &share.calls : NULL;
}
