/* SPDX-License-Identifier: BSD-3-Clause */
/* This process's part of UDP port 4791. */
#pragma once

#include "rdv/wire.h"

/*
 * Joins the group of sockets once, if need be; asks weftd, so it may block as other control calls.
 * One that failed is tried again after a second.  0; -EOPNOTSUPP: WEFT_WIRE=never; others as
 * rdv_wire_join().
 */
int join_wire(void);

/* The sockets of this process; NULL before join_wire() succeeded. */
const struct rdv_wire *join_sockets(void);

/* In a forked child: the parent's are not ours. */
void join_forked_child(void);
