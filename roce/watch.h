/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watcher: a thread that runs the engine while no thread of the program does.  On duty it
 * sleeps until packets come or a time passes, and serves at once.  Where the program looks itself,
 * or sleeps for them, it would only be in the way: after a number of packets that a program would
 * have seen as soon, it naps, and comes back to duty at the first nap in which nobody looked, or
 * left packets lying.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Starts it, once; the sockets are joined.  -errno: there is no thread to be had. */
int watch_start(void);

/*
 * With the engine stopped: it has to be run at `next` (0: not by itself).  True: the watcher would
 * sleep longer, and is to be woken once the engine goes on; `self`: it is the watcher who says so.
 */
bool watch_until(uint64_t next, bool self);

/* False: the program has closed what the watcher is woken by. */
bool watch_whole(void);

/* One that nobody can wake any more is replaced; any other wakes, and looks at what it sleeps on.
 */
void watch_mend(void);

/* Wakes it in any case. */
void watch_wake(void);

/*
 * A thread of the program is about to sleep until packets come, which it will serve, and is awake
 * again: packets alone do not wake the watcher meanwhile.
 */
void watch_sleeper(void);
void watch_no_sleeper(void);

/* A thread of the program runs the engine: if it counts as asleep, a signal handler left our sleep
 * by longjmp(). */
void watch_awake(void);

/* In a forked child, where it does not run. */
void watch_forked_child(void);
