// SPDX-License-Identifier: BSD-3-Clause
#include "shim/scif.h"

#include <errno.h>
#include <stddef.h>

#include "scif/face/device.h"
#include "shim/load.h"

static const char library[] = "libscif.so.0", symbol[] = "weft_scif_device";

_Atomic(const struct scif_device *) scif_found;

static const struct scif_device *keep(const struct scif_device *found)
{
	if (found)
		atomic_store_explicit(&scif_found, found, memory_order_release);
	return found;
}

const struct scif_device *scif_look(void)
{
	const struct scif_device *found = scif_known();

	return found ? found : keep(load_found(library, symbol));
}

int scif_open_device(int flags)
{
	const struct scif_device *device = scif_known();
	int fd;

	if (!device)
		device = keep(load_table(library, symbol));
	if (!device) {
		errno = ENXIO;
		return -1;
	}
	fd = device->open(flags);
	if (fd < 0)
		errno = -fd;
	return fd < 0 ? -1 : fd;
}
