/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Forks: what a client's functions hold, a child would have for ever.  So a fork waits until none
 * of them copies, a second at most, and operations that would begin meanwhile wait for it.
 */
#pragma once

#include <stdbool.h>

/* From now on this process's forks wait. */
void peer_fork_watch(void);

/* An operation has entered its region: must it leave, and try again after peer_fork_pass()? */
bool peer_fork_begins(void);

/*
 * Returns when no fork is going on, a second at most: then false, and the operation begins
 * nevertheless, for it may be the forking thread's own.  Another fork may have begun: ask again
 * once it has entered.
 */
bool peer_fork_pass(void);
