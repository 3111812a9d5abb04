/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process does beside its links: regions over their memory come and go, and it forks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { GUARD_BYTE = 0xa5 };

struct end;
struct ibv_pd;
struct memory;

/* From now on, until the other call returns, e's memory and PD are disturbed. */
void disturb_add(struct end *e);
void disturb_remove(struct end *e);
/* Requests of a round are under way between e and the other end, or no longer. */
void disturb_runs(const struct end *e, bool runs);
/* e waits for completions, or no longer: what comes is brought to its place from here, too. */
void disturb_polls(const struct end *e, bool polls);
/* The same of memory that stays until the end, after disturb_start(). */
void disturb_add_common(const struct memory *m, struct ibv_pd *pd);

/* Starts the threads that disturb; they end when the test does (disturb_stop() waits). */
void disturb_start(uint64_t seed, unsigned process);
void disturb_stop(void);
