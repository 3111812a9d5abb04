/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups that an id has joined. */
#pragma once

#include "rdmacm/rdmacm.h"

/*
 * The program takes the event of that join: attaches the QP, if there is one, and fills the event
 * in, which becomes MULTICAST_ERROR if that fails.  NULL: it has been left meanwhile.
 */
struct join *join_take_event(struct ident *id, uint32_t number, struct rdma_cm_event *event);

/* The event is acknowledged; j may be gone afterwards. */
void join_ack_event(struct ident *id, struct join *j);

/* Frees them; the QP stays as it is. */
void joins_free(struct ident *id);
