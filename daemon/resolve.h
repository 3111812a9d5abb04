/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ways to other hosts, for ids that ask for one (OP_CM_RESOLVE): the route is the kernel's, and
 * whether its next hop is there the kernel finds out when something is to be sent there.
 *
 *   route? --no--> the call fails as the kernel's own does: -ENETUNREACH, -EACCES, ...
 *     | yes
 *   from an address of the device? --none leads there--> ADDR_ERROR -ENODEV
 *     | yes
 *   next hop known? --yes--> ADDR_RESOLVED
 *     | no: an empty datagram to the destination; then whichever comes first
 *     +-- it answers: ADDR_RESOLVED
 *     '-- the id's time is over: ADDR_ERROR -ETIMEDOUT
 *
 * That the kernel has given the next hop up is no answer: it may come while there is time.
 *
 * Nothing blocks.  An id is named by its owner's attach id and a handle.
 */
#pragma once

#include <jansson.h>

#include "base/deadline.h"
#include "daemon/channels.h"
#include "daemon/server.h"

struct resolve;

struct resolver {
	struct watch news; /* first member; of next hops, -1: nobody waits */
	struct server *server;
	struct channels *channels;
	struct resolve *list;
	uint32_t n;
	struct deadlines deadlines;
	uint64_t asked, unreachable, timed_out;
};

void resolver_start(struct resolver *r, struct server *s, struct channels *channels);

/*
 * Answers by an event, at once or later; a second call for an id takes the place of its first.
 * No answer comes of what fails: -ENETUNREACH, -EHOSTUNREACH, -EACCES, -EINVAL there is no route,
 * as the kernel says it; -EINVAL; -ENOMEM, -EMFILE.  resolver_run() is called afterwards.
 */
int resolver_ask(struct resolver *r, uint32_t owner, const struct cm_resolve_call *call);

/* The id is gone: no answer comes any more. */
void resolver_forget(struct resolver *r, uint32_t owner, uint32_t handle);

/* Its answer goes to another channel. */
void resolver_migrate(struct resolver *r, uint32_t owner, uint32_t handle, uint32_t channel);

/* A process is gone. */
void resolver_owner_gone(struct resolver *r, uint32_t owner);

/* Answers those whose time is over; when the next one's is, 0: none waits. */
void resolver_run(struct resolver *r);
uint64_t resolver_next(const struct resolver *r);

/* Adds to o what weft status shows of it. */
void resolver_status(const struct resolver *r, json_t *o);
