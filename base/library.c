// SPDX-License-Identifier: BSD-3-Clause
#include "base/library.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>

bool library_has(void *library, const void *address)
{
	struct link_map *of = NULL, *has = NULL;
	Dl_info info;

	return address && dladdr1(address, &info, (void **)&of, RTLD_DL_LINKMAP) &&
	       dlinfo(library, RTLD_DI_LINKMAP, &has) == 0 && of == has;
}

void *library_own(void *library, const char *name)
{
	void *symbol = dlsym(library, name);

	return library_has(library, symbol) ? symbol : NULL;
}

int library_init(void *library)
{
	void *symbol = library_own(library, "init_module");
	int (*init)(void) = (int (*)(void))symbol;

	return init ? init() : 0;
}
