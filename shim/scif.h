/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way to libscif.so.0, which is an endpoint's home: the shim is not linked with it, and loads
 * it when a program opens the device.
 */
#pragma once

#include <stdatomic.h>

struct scif_device;

extern _Atomic(const struct scif_device *) scif_found;

/* libscif.so.0 as far as the shim has met it; NULL: no endpoint of the device exists. */
static inline const struct scif_device *scif_known(void)
{
	return atomic_load_explicit(&scif_found, memory_order_acquire);
}

/* The same, after looking whether the program has loaded it.  Keeps errno. */
const struct scif_device *scif_look(void);

/* Opens the device, loading the library; -1 with errno: ENXIO there is none, the log says why. */
int scif_open_device(int flags);
