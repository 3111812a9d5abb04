/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The clients of this process, in the order in which they came, and the regions that they may name
 * by a core context.  ib_register_peer_memory_client() and ib_unregister_peer_memory_client() are
 * here, too: <rdma/peer_mem.h> has their contracts.
 */
#pragma once

#include "peermem/region.h"

/*
 * For checkers of clients, before any registers: watch is told of each client that registers, by
 * its copy, before anybody can ask it, or NULL if it is refused; by its own structure; and by where
 * it wants the callback, or NULL.  It may exchange the functions of the copy, and the callback.
 * refused is told why, each time that ib_unregister_peer_memory_client() does nothing.
 */
typedef void (*peer_watch_fn)(struct peer_client *c, const struct peer_memory_client *own,
	invalidate_peer_memory *callback);
void peer_registry_watch(peer_watch_fn watch, void (*refused)(const char *why));

/* Whether there is a client to ask.  Some ns. */
bool peer_registry_any(void);

/* How many clients there are. */
unsigned peer_registry_count(void);

/*
 * Asks one client after the other until one says that the range of r is its own, which t notes; no
 * client comes or goes meanwhile.  1: r has its client, its ticket, and acquire to undo; from now
 * on callbacks find it.  0: nobody's.  -EDEADLK: a client's acquire is running in this thread.
 */
int peer_registry_claim(struct peer_region *r, struct peer_trace *t);

/*
 * The region that context means to the client of that handle, with g added to it as this thread's
 * callback.  NULL: there is none; counted, and in the log.
 */
struct peer_region *peer_registry_find(void *handle, uint64_t context, struct peer_guest *g);

/* From now on no callback finds r. */
void peer_registry_hide(struct peer_region *r);

/*
 * The last that is done with r, released and hidden: its client no longer waits for it.  False
 * while somebody is inside it.
 */
bool peer_registry_left(struct peer_region *r);

/*
 * Gives each client whose counters have no mirror yet what place answers, if that is not NULL.
 * place must not call clients or the registry.
 */
void peer_registry_show(_Atomic uint64_t *(*place)(const char *name, const char *version));

/* Does another thread read or write the bytes of a region just now? */
bool peer_registry_busy(void);

/*
 * In a forked child: its clients are the parent's, with counters of its own; regions and tickets
 * stay with the parent, and no client is called for them.
 */
void peer_registry_forked_child(void);

/*
 * Calls fn of each client, in order, until it answers other than 0, which is returned.  fn must not
 * call clients or the registry.
 */
int peer_registry_each(int (*fn)(const struct peer_client *c, void *arg), void *arg);
