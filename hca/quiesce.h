/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting until no thread of any process uses what was just invalidated. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * To be called after the invalidating store.  Fences, then returns once every exec slot, of our
 * threads, of our peers and of weftd, that named this process has moved or its process is dead.
 * Bounded by one copy step for running peers; waits for a stopped one, with a log line after a
 * second.
 */
void quiesce(void);

/*
 * The same for at most so many ns: false if somebody has not moved by then, who was stopped.
 */
bool quiesce_within(uint64_t ns);

/* The same, and waits for our own threads until they are through with their whole run. */
void quiesce_runs(void);
