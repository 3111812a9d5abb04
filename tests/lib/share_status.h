/* SPDX-License-Identifier: BSD-3-Clause */
/* What `weft status --json` tells: of a process, and of peer clients. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Number `name` of group "share" or "counters" of process pid; -1: no such. */
int64_t status_of(pid_t pid, const char *group, const char *name);

/* The same of all together, as weftd has it; -1: no such. */
int64_t status_of_all(const char *group, const char *name);

/*
 * The same of a process that has ended, of group "counters" or "not_mapped", where what is 0 is not
 * named.  group NULL: 0.  -1: none of that pid is kept.
 */
int64_t status_of_ended(pid_t pid, const char *group, const char *name);

/* How many that ended are kept. */
int64_t status_ended_rows(void);

/* That counter of the peer client with that name, of all processes; -1: there is no such client. */
int64_t peer_counter(const char *client, const char *counter);

/* The same as the first, of ourselves, in group "share". */
int64_t share_count(const char *name);

/* May this user hold off other threads in system calls too (a full userfaultfd)? */
bool can_hold_off(void);

/* Areas in /proc/self/maps. */
unsigned areas(void);
