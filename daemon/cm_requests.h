/* SPDX-License-Identifier: BSD-3-Clause */
/* The communication manager in weftd: what processes ask of it (OP_CM_BIND and on). */
#pragma once

#include <jansson.h>

#include "cm/cm.h"
#include "daemon/channels.h"
#include "daemon/mad_service.h"
#include "daemon/resolve.h"
#include "daemon/session.h"

/* A request that nobody will ever see. */
struct orphan;

struct cm_requests {
	struct cm cm;
	struct channels *channels; /* where its events go */
	struct resolver resolver;
	struct mad_service *mads;
	struct orphan *orphans;
	uint32_t randoms[64];
	unsigned n_randoms; /* how many of them are left */
};

/* channels and mads are filled in.  0 or a negative errno. */
int cm_requests_start(struct cm_requests *k, struct server *s, struct mad_port *port);

/* Carries out one of owner's. */
int cm_requests_do(
	struct cm_requests *k, uint32_t owner, const struct proto_in *in, struct reply *r);

/* An event that was dropped: the request that it told of ends with the next run. */
void cm_requests_drop(struct cm_requests *k, uint32_t owner, const struct cm_event *e);

/* Sees to what timed out, and ends requests that nobody will see; when it is to be called again. */
void cm_requests_run(struct cm_requests *k);
uint64_t cm_requests_next(const struct cm_requests *k);

/* Is there any id, or way asked for? */
bool cm_requests_any(const struct cm_requests *k);

/* A process is gone. */
void cm_requests_owner_gone(struct cm_requests *k, uint32_t owner);

/* For weft status: what there is, and what happened so far. */
void cm_requests_status(const struct cm_requests *k, json_t *o);
void cm_requests_counts(const struct cm_requests *k, json_t *o);
