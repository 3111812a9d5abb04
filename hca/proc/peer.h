/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes whose segments we map: one entry each, counted references by our QPs. */
#pragma once

#include <stdbool.h>

#include "hca/seg/view.h"

struct peer {
	struct peer *next;
	struct view view;
	struct access_path path; /* view.path; its lane is of run/ */
	bool needs_agent;        /* the kernel does not let it at our memory: we hold the agent */
	int refs;                /* peers.lock, as guest and greeted */
	struct own_fd async_fd;
	struct own_fd arena_fd;
	struct arena arena;
	struct backing_map backings;
	bool self;
	uint32_t greeted;            /* our entry in its list of guests + 1 */
	bool guest;                  /* it is in ours: one reference is for that */
	struct channel_fd *channels; /* of that process, as far as we have them */
};

/*
 * The process that owns QP number qpn, mapped, with one more reference; *index is the QP's index
 * there.  May ask weftd.  -ENOENT: nobody; -EADDRNOTAVAIL: the number is not of this fabric.
 */
int peer_find(uint32_t qpn, struct peer **p, uint32_t *index);

/* Is the number of another fabric, for all that weftd knows?  Maps nobody; may ask weftd. */
bool peer_elsewhere(uint32_t qpn);

/* The process of that attach id, ourselves too; otherwise as peer_find(). */
int peer_find_attach(uint32_t attach, struct peer **p);

/*
 * Tells p, before we first touch it as one who is not its peer, to look at our exec slots when it
 * takes something away.  False: its list is full; then it may not be touched.
 */
bool peer_greet(struct peer *p);

/* Gets to know those who did that to us, and forgets those who are gone.  May ask weftd. */
void peers_meet_guests(void);

/* Drops a reference; the last one unmaps. */
void peer_put(struct peer *p);

/*
 * Makes sure that we can write the eventfd of channel id of p (0: none) without asking weftd then.
 * -ENOENT: weftd, new itself, does not know it yet; short of fds or memory we go without.
 */
int peer_prepare_channel(struct peer *p, uint32_t id);

/*
 * Writes channel id (0: the async eventfd) of process attach, and enters the note right before
 * that.  False: we have no fd for it.
 */
bool peer_fire(uint32_t attach, uint32_t id, struct fired_note *note);

/*
 * Calls fn for every peer but ourselves, with the list locked: fn must be short, and never waits,
 * for weftd neither.  It may raise p->refs to keep the peer beyond the call, to be dropped by
 * peer_put().
 */
void peers_each(void (*fn)(struct peer *p, void *arg), void *arg);

/* Lets go of memory that peers do not share any more, and that we still have mapped. */
void peers_sweep(void);

/*
 * Frees a token that a process holds which we know and which is dead; weftd does the same, where
 * it runs.  True if so.
 */
bool peer_free_token(_Atomic uint64_t *token);

/* Is that process one that we know, and dead?  Takes no lock that is held for long. */
bool peer_is_dead(uint32_t attach);

/* Before a fork, by the thread that forks; after it in the parent, and in the child. */
void peers_before_fork(void);
void peers_after_fork(void);
void peers_forked_child(void);
