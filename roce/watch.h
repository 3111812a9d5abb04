/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watcher: a thread that runs the engine while no thread of the program does.  On duty it
 * sleeps until packets come or a time passes, and serves at once.  Where the program looks itself
 * it would only be in the way: after a number of packets that were gone when it woke, it naps, and
 * comes back to duty at the first nap in which nobody looked.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Starts it, once; the sockets are joined.  -errno: there is no thread to be had. */
int watch_start(void);

/* With the engine stopped: it has to be run at `next` (0: not by itself).  Wakes the watcher if it
 * would sleep longer; `self`: it is the watcher who says so. */
void watch_until(uint64_t next, bool self);

/* Wakes it in any case. */
void watch_wake(void);

/* In a forked child, where it does not run. */
void watch_forked_child(void);
