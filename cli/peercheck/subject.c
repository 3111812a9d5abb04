// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/subject.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "cli/peercheck/record.h"
#include "cli/peercheck/watch.h"
#include "peermem/generation.h"

struct subject subject;

static bool is_of(void *library, void *symbol)
{
	struct link_map *of = NULL, *has = NULL;
	Dl_info info;

	return symbol && dladdr1(symbol, &info, (void **)&of, RTLD_DL_LINKMAP) &&
	       dlinfo(library, RTLD_DI_LINKMAP, &has) == 0 && of == has;
}

static void *own_symbol(const char *name)
{
	void *symbol = dlsym(subject.loaded, name);

	return is_of(subject.loaded, symbol) ? symbol : NULL;
}

static char generation(void)
{
	const char *note = dlsym(subject.loaded, "weft_peer_generation");

	return note ? *note : 'W';
}

/* ---- the device ---- */

static const struct weft_peer_device *of_shim(const char *name)
{
	void *symbol = dlsym(subject.loaded, "weft_kshim_device");
	const struct weft_peer_device *(*find)(const char *name) =
		(const struct weft_peer_device *(*)(const char *name))symbol;

	return find ? find(name) : NULL;
}

static const char *find_device(const char *name)
{
	static char why[256];
	void *library;

	subject.device = of_shim(name);
	if (subject.device)
		return NULL;
	library = strchr(name, '/') ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : NULL;
	if (library)
		subject.device = dlsym(library, "weft_peer_device");
	if (!subject.device)
		subject.device = own_symbol("weft_peer_device");
	if (subject.device && subject.device->size >= sizeof *subject.device)
		return NULL;
	snprintf(why, sizeof why, "there is no device %s: %s", name,
		subject.device ? "its structure is too short"
			       : "it is nvidia, kfd or vma, for a "
				 "client of libweftkshim, or a "
				 "library with weft_peer_device");
	return why;
}

/* ---- loading ---- */

const char *subject_load(const struct subject_spec *spec)
{
	static char why[512];
	const char *wrong;

	peer_generation_use(spec->letter);
	watch_begin();
	subject.loaded = dlopen(spec->client, RTLD_NOW | RTLD_LOCAL);
	if (!subject.loaded) {
		snprintf(why, sizeof why, "%s", dlerror());
		return why;
	}
	record_mine()->letter = generation();
	subject.kshim = dlsym(subject.loaded, "weft_kshim");
	wrong = find_device(spec->device);
	if (!wrong && subject.kshim) {
		subject.kshim->watch(&watch_of_shim);
		subject.kshim->old_freeing(spec->old_freeing);
	}
	return wrong;
}

int subject_init(void)
{
	void *symbol = own_symbol("init_module");
	int (*init)(void) = (int (*)(void))symbol;
	unsigned call = record_begin("init_module()");
	int rc;

	watch_enter("init_module");
	rc = init ? init() : 0;
	watch_enter(NULL);
	record_end(call, init ? " = %d" : ": it has none", rc);
	subject.inited = !rc;
	return rc;
}

void subject_exit(void)
{
	void *symbol = own_symbol("cleanup_module");
	void (*clean)(void) = (void (*)(void))symbol;
	unsigned call;

	if (!subject.inited)
		return;
	call = record_begin("cleanup_module()");
	watch_enter("cleanup_module");
	if (clean)
		clean();
	else
		dlclose(subject.loaded);
	watch_enter(NULL);
	record_end(call, clean ? "" : ": it has none; unloaded");
	subject.inited = false;
}
