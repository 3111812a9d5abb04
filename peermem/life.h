/* SPDX-License-Identifier: BSD-3-Clause */
/* What registration, callback and deregistration of a region share.  All with its lock held. */
#pragma once

#include "peermem/region.h"

/*
 * Waits until no other thread is inside r in one of the roles.  Drops the lock meanwhile.  After 1
 * s the log says who waits for whom; -ETIMEDOUT after 10 s.
 */
int peer_await(struct peer_region *r, unsigned roles);

/* Wakes who waits for what the caller changed. */
void peer_changed(struct peer_region *r);

/*
 * Undoes those of steps that are still to be undone, last first; what another thread is undoing is
 * not waited for.  g is this thread's guest in r.  Drops the lock over the client's functions.
 */
void peer_undo(struct peer_region *r, struct peer_guest *g, unsigned steps);

/* As peer_undo() of the pages, where the client does it by itself. */
void peer_disown(struct peer_region *r);
