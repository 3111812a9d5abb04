/* SPDX-License-Identifier: BSD-3-Clause */
/* From names to addresses, and ids at them. */
#pragma once

#include <rdma/rdma_cma.h>

#include "rpma/rpma.h"

/*
 * Makes a synchronous id that has found its device and its route to addr and port (which may be
 * NULL: then the address alone is resolved).  Blocks for at most the timeout, twice.  NOMEM,
 * PROVIDER.
 */
int address_reach(const char *addr, const char *port, int timeout_ms, struct rdma_cm_id **id);

/*
 * Makes an id bound to addr and port, on that channel; NULL: a synchronous one.  NOMEM, PROVIDER.
 */
int address_bind(const char *addr, const char *port, struct rdma_event_channel *channel,
	struct rdma_cm_id **id);
