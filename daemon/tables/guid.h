/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The GUID of a node: what tells this adapter from all others.  Machines made from one image have
 * a machine id in common, namespaces and containers of one machine a boot, clones of a container
 * a path: so it is made from all of them.
 */
#pragma once

#include <stdint.h>

/* Where a fabric is.  Fields that cannot be had are empty or 0. */
struct guid_place {
	char host[64];                 /* /etc/machine-id, else the host's name */
	char boot[64];                 /* of this kernel: changes with each start of the host */
	uint64_t netns_dev, netns_ino; /* of the network namespace */
	uint64_t dir_dev, dir_ino;     /* of the runtime directory */
	const char *fabric;            /* borrowed */
};

/* Fills in what this process sees; dir_fd is its runtime directory.  Does not fail. */
void guid_look(struct guid_place *p, int dir_fd, const char *fabric);

/*
 * The GUID of the node of that place, network order: an EUI-64 that is locally administered and
 * not of a group.  The same for as long as boot, namespace and directory last, however often
 * weftd is started.
 */
uint64_t guid_make(const struct guid_place *p);
