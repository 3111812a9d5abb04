/* SPDX-License-Identifier: BSD-3-Clause */
/* This process's part of UDP port 4791. */
#pragma once

#include <stdbool.h>

#include "rdv/wire.h"

/*
 * Joins the group of sockets once, if need be; asks weftd, so it may block as other control calls.
 * One that failed is tried again after a second.  0; -EOPNOTSUPP: WEFT_WIRE=never; others as
 * rdv_wire_join().
 */
int join_wire(void);

/* The sockets of this process; NULL before join_wire() succeeded. */
const struct rdv_wire *join_sockets(void);

/* With the engine stopped: false: the program has closed our sockets behind our back. */
bool join_whole(void);

/* With the engine stopped: these sockets are used no more; join_wire() gets others. */
void join_drop(void);

/* In a forked child: the parent's are not ours. */
void join_forked_child(void);
