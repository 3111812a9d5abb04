/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between the core (peermem/) and the client: every function of the client, and its callback, goes
 * through here, is recorded and judged.  Scenarios stop threads at points: before and after each
 * function, and each call that the client makes of the shim.
 */
#pragma once

#include <stdbool.h>

#include "kshim/kshim.h"
#include "peermem/client.h"

/* A client that registered. */
struct watched_client {
	struct peer_client *of; /* NULL: refused */
	struct peer_memory_client ops;
	const struct peer_memory_client *own; /* its structure, which is to stay as it was */
	invalidate_peer_memory callback;      /* the core's; NULL: it asked for none */
};

/* A region of it, from acquire on; they stay until the process ends. */
struct watched_region {
	struct watched_region *next;
	struct watched_client *client;
	void *context;
	uint64_t core, addr, size;
	struct sg_table *table; /* where the core keeps it; NULL: not mapped */
	uint64_t covered;       /* bytes of its entries */
	unsigned long page_size;
	bool pinned, released; /* get_pages was called; release was */
	unsigned told;         /* calls of the callback */
};

enum { WATCHED_CLIENTS = 8 };

/* What libweftkshim.so.0 is to tell. */
extern const struct kshim_watch watch_of_shim;

/* From now on clients that register are watched. */
void watch_begin(void);

/* How many registered; the first, the last region; NULL: there is none. */
unsigned watch_clients(void);
const struct watched_client *watch_client(unsigned i);
const struct watched_region *watch_regions(void);

/* This thread runs that function of the client; NULL: none.  For who crashes in it. */
void watch_enter(const char *function);
const char *watch_function(void);

/*
 * What a scenario does at points, in the threads that come to them: name, "acquire" or
 * "nvidia_p2p_get_pages", before or after; and in the callback before the core is told.
 */
struct watch_plan {
	void (*point)(const char *name, bool after);
	void (*callback)(struct watched_region *r); /* NULL: an unknown one */
	void (*waits)(void); /* this thread waits for a lock of the client's */
	bool late_is_fine;   /* several threads: a callback may come after release */
};

void watch_plan(const struct watch_plan *plan);

/* From now on a range that acquire claims is judged: it is what; NULL: it may be the client's. */
void watch_forbid(const char *what);

/* At the end of a scenario: what can be judged by all of it: locks, the client's structure. */
void watch_judge(void);
