/* SPDX-License-Identifier: BSD-3-Clause */
/* Who we are: the fabric page and what stands in it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "fabric/gid_table.h"

/*
 * Makes the fabric page of an Ethernet node with that GUID (daemon/tables/guid.h), one port and no
 * GIDs: *page for writing, *fd a memfd that can only be mapped read-only any more.  -errno.
 */
int identity_create(const char *fabric, uint64_t guid, struct fabric_page **page, int *fd);

/* Unmaps it; the fd is the caller's. */
void identity_end(struct fabric_page *page);

/* What a look at the host's addresses and links brought. */
struct identity_news {
	size_t lost;             /* addresses that found no room in the GID table */
	bool gids;               /* the GID table is another */
	bool went_up, went_down; /* the port */
};

/* Publishes the host's addresses as GIDs of port 1, and the state and MTU of that port. */
struct identity_news identity_update(
	struct fabric_page *page, const struct gid_addr *addrs, size_t n, bool port_up);

/* Sets or clears PORT_CAP_* bits of a port that the page has. */
void identity_set_cap(struct fabric_page *page, uint32_t port, uint32_t bits, bool on);
