// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/subject.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/library.h"
#include "cli/peercheck/forks.h"
#include "cli/peercheck/record.h"
#include "cli/peercheck/watch.h"
#include "peermem/generation.h"

struct subject subject;

static char generation(void)
{
	const char *note = dlsym(subject.loaded, "weft_peer_generation");

	return note ? *note : 'W';
}

static void *load(const char *path)
{
	struct record *r = record_mine();
	void *library;

	snprintf(r->loading, sizeof r->loading, "%s", path);
	watch_enter("a constructor");
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	forks_guard(watch_function());
	watch_enter(NULL);
	r->loading[0] = '\0';
	return library;
}

/* ---- the device ---- */

static const struct weft_peer_device *of_shim(const char *name)
{
	void *symbol = dlsym(subject.loaded, "weft_kshim_device");
	const struct weft_peer_device *(*find)(const char *name) =
		(const struct weft_peer_device *(*)(const char *name))symbol;

	return find ? find(name) : NULL;
}

/* Why that library has no device; NULL: it has. */
static const char *of_library(const char *path)
{
	subject.device_library = load(path);
	if (!subject.device_library)
		return dlerror();
	subject.device = dlsym(subject.device_library, "weft_peer_device");
	return subject.device ? NULL : "it defines no weft_peer_device";
}

static const char *find_device(const struct subject_spec *spec)
{
	static char why[512];
	const char *wrong = NULL;

	subject.device = of_shim(spec->device);
	if (!subject.device && strchr(spec->device, '/'))
		wrong = of_library(spec->device);
	else if (!subject.device && (!spec->device_given || !strcmp(spec->device, "own")))
		subject.device = library_own(subject.loaded, "weft_peer_device");
	record_mine()->own_device =
		subject.device && !wrong && library_has(subject.loaded, subject.device);
	if (subject.device && subject.device->size >= sizeof *subject.device)
		return NULL;
	if (subject.device)
		wrong = "its structure is too short";
	if (!wrong)
		wrong = "it is nvidia, kfd or vma, for a client of libweftkshim, own for one that "
			"brings it, or the path of a library with weft_peer_device";
	snprintf(why, sizeof why, "there is no device %s: %s", spec->device, wrong);
	return why;
}

/* ---- loading ---- */

const char *subject_load(const struct subject_spec *spec)
{
	static char why[512];
	const char *wrong;

	peer_generation_use(spec->letter);
	watch_begin();
	subject.loaded = load(spec->client);
	if (!subject.loaded) {
		snprintf(why, sizeof why, "%s", dlerror());
		return why;
	}
	record_mine()->letter = generation();
	subject.kshim = dlsym(subject.loaded, "weft_kshim");
	record_mine()->kshim = subject.kshim;
	wrong = find_device(spec);
	if (!wrong && subject.kshim) {
		subject.kshim->watch(&watch_of_shim);
		subject.kshim->old_freeing(spec->old_freeing);
	}
	return wrong;
}

int subject_init(void)
{
	void *symbol = library_own(subject.loaded, "init_module");
	int (*init)(void) = (int (*)(void))symbol;
	unsigned call = record_begin("init_module()");
	int rc;

	watch_enter("init_module");
	rc = init ? init() : 0;
	forks_guard("init_module");
	watch_enter(NULL);
	record_end(call, init ? " = %d" : ": it has none", rc);
	subject.inited = !rc;
	return rc;
}

void subject_exit(void)
{
	void *symbol = library_own(subject.loaded, "cleanup_module");
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
	forks_guard("cleanup_module");
	watch_enter(NULL);
	record_end(call, clean ? "" : ": it has none; unloaded");
	subject.inited = false;
}
