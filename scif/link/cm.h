/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binding, listening, connecting and accepting.  An rdma_cm id's context is its endpoint, which
 * lives until the id is destroyed, and thus until its last event is acknowledged.
 */
#pragma once

#include <rdma/rdma_cma.h>
#include <stdbool.h>

#include "scif/ep/node.h"

struct scif_ep;

/* The calls of the same names without conversion of errors. */
int cm_bind(struct scif_ep *ep, uint16_t pn);
int cm_listen(struct scif_ep *ep, int backlog);
/* fd is the endpoint's. */
int cm_connect(struct scif_ep *ep, int fd, struct scif_id dst, bool block);
/* fd is the listener's; the new endpoint's fd, or -errno. */
int cm_accept(struct scif_ep *ep, int fd, bool block, struct scif_id *peer);

/* Acts on an event and acknowledges it.  For the service's thread, as what follows. */
void cm_event(struct rdma_cm_event *ev);
/* The endpoint is closed: it connects no more.  Under its lock; for any thread. */
void cm_abandon(struct scif_ep *ep);
/* Does anybody connect? */
bool cm_connecting(void);
/* Ends attempts that take too long.  May be called as often as one likes. */
void cm_tick(void);
/* In a forked child: nobody does. */
void cm_forked(void);
