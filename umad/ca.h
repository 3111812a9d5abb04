/* SPDX-License-Identifier: BSD-3-Clause */
/* A device, which libibumad calls a channel adapter even if it is a switch, as sysfs has it. */
#pragma once

#include "umad/umad.h"

enum { NODE_TYPE_CA = 1, NODE_TYPE_SWITCH = 2, NODE_TYPE_ROUTER = 3 };

/* A name that no device has, for answers where there is none. */
extern const char ca_nobody[];

/*
 * Reads device name with all its ports into *ca; ca_free() it.  -ENOENT: no such device, or no
 * ports; -EIO: a port that port_read() refuses, or whose number is none from 0 to 9; -EINVAL: a
 * broken GUID; -ENOMEM.  Nothing is to be freed then.
 */
int ca_read(const char *name, umad_ca_t *ca);

/* Frees the ports. */
void ca_free(umad_ca_t *ca);

/* The port of that number, NULL if ca has none. */
umad_port_t *ca_port(const umad_ca_t *ca, unsigned portnum);

/* True if name is that of a device of InfiniBand's kinds; the kernel has iWARP adapters, too. */
bool ca_is_node(const char *name);
