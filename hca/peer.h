/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes whose segments we map: one entry each, counted references by our QPs. */
#pragma once

#include <stdbool.h>

#include "hca/view.h"

struct peer {
	struct peer *next;
	struct view view;
	int refs;
	struct own_fd async_fd;
	struct own_fd arena_fd;
	struct arena arena;
	bool self;
	struct channel_fd *channels; /* of that process, as far as we have them */
};

/*
 * The process that owns QP number qpn, mapped, with one more reference; *index is the QP's index
 * there.  May ask weftd.  -ENOENT: nobody.
 */
int peer_find(uint32_t qpn, struct peer **p, uint32_t *index);

/* Drops a reference; the last one unmaps. */
void peer_put(struct peer *p);

/* Makes sure that we can write the eventfd of channel id of p without asking weftd then. */
void peer_prepare_channel(struct peer *p, uint32_t id);

/* Writes channel id (0: the async eventfd) of process attach.  False: we have no fd for it. */
bool peer_fire(uint32_t attach, uint32_t id);

/*
 * Calls fn for every peer but ourselves, with the list locked: fn must be short.  It may raise
 * p->refs to keep the peer beyond the call, to be dropped by peer_put().
 */
void peers_each(void (*fn)(struct peer *p, void *arg), void *arg);

/*
 * Frees a token that a process holds which we know and which is dead; weftd does the same, where
 * it runs.  True if so.
 */
bool peer_free_token(_Atomic uint64_t *token);

void peers_forked_child(void);
