/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting until no thread of any process uses what was just invalidated. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct exec_slot;
struct peer;

/*
 * To be called after the invalidating store.  Fences, then returns once every exec slot, of our
 * threads, of our peers and of weftd, that named this process has moved or its process is dead.
 * Bounded by one copy step for running peers; waits for a stopped one, with a log line after a
 * second.
 */
void quiesce(void);

/*
 * The same for at most so many ns: false if somebody has not moved by then, who was stopped.
 * copies: does not wait for peers that use mapped memory alone (SLOT_MAPPED).
 */
bool quiesce_within(uint64_t ns, bool copies);

/* As quiesce(), for threads of this process alone, and for at most so many ns. */
bool quiesce_own_within(uint64_t ns);

enum { LATE_MAX = 32 };

/* Exec slots of peers that have not moved; each holds a reference to the peer. */
struct late {
	unsigned n;
	struct late_slot {
		struct peer *peer;
		struct exec_slot *slot;
		uint64_t word;
	} at[LATE_MAX];
};

/*
 * As quiesce(), but waits 100 ms at most for peers that use mapped memory alone; those that are
 * left stand in *late and know that they were passed.  What they load and store until they move
 * goes through the arena, to memory whose key was valid when they began.
 */
void quiesce_but_late(struct late *late);

/* Has every one of them moved, or died? */
bool late_over(const struct late *late);

/* Lets go of the peers; may wait for threads of ours. */
void late_put(struct late *late);

/* The same, and waits for our own threads until they are through with their whole run. */
void quiesce_runs(void);
