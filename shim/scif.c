// SPDX-License-Identifier: BSD-3-Clause
#include "shim/scif.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "scif/face/device.h"

static const char library[] = "libscif.so.0";

_Atomic(const struct scif_device *) scif_found;

/* What a loaded library offers; NULL if it is another's of that name. */
static const struct scif_device *ask(void *loaded)
{
	const struct scif_device *(*device)(void) =
		loaded ? dlsym(loaded, "weft_scif_device") : NULL;
	const struct scif_device *found = device ? device() : NULL;

	if (found)
		atomic_store_explicit(&scif_found, found, memory_order_release);
	return found;
}

const struct scif_device *scif_look(void)
{
	const struct scif_device *found = scif_known();
	int saved = errno;

	if (!found)
		found = ask(dlopen(library, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE));
	errno = saved;
	return found;
}

/* The library that lies beside this one. */
static void *load_beside(void)
{
	char path[PATH_MAX];
	const char *slash;
	Dl_info us;

	if (!dladdr(&scif_found, &us) || !(slash = strrchr(us.dli_fname, '/')))
		return NULL;
	if (snprintf(path, sizeof path, "%.*s/%s", (int)(slash - us.dli_fname), us.dli_fname,
		    library) >= PATH_MAX)
		return NULL;
	return dlopen(path, RTLD_NOW | RTLD_NODELETE);
}

static const struct scif_device *load(void)
{
	const struct scif_device *found = scif_look();

	if (!found)
		found = ask(load_beside());
	if (!found)
		found = ask(dlopen(library, RTLD_NOW | RTLD_NODELETE));
	return found;
}

int scif_open_device(int flags)
{
	int saved = errno, fd;
	const struct scif_device *device = load();
	const char *why;

	if (!device) {
		why = dlerror();
		log_line(LOG_LVL_ERROR, "SCIF: the device cannot be opened: %s",
			why ? why : "libscif.so.0 is not Weft's");
		errno = ENXIO;
		return -1;
	}
	errno = saved;
	fd = device->open(flags);
	if (fd < 0)
		errno = -fd;
	return fd < 0 ? -1 : fd;
}
