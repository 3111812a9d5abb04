/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that sleep in poll(2) for something that others may change, and what wakes them: each
 * thread has an eventfd, which it polls beside the rest, and whoever changes the thing writes to
 * those of all that are entered in its list.
 */
#pragma once

/* One that sleeps; entered under the lock of what it sleeps for, which guards the list. */
struct sleeper {
	struct sleeper *next, **link;
	int fd; /* its eventfd, -1: none */
};

/* The eventfd of this thread, which stays its own; -1: it needs none, or there is none to be had.
 */
int sleeper_fd(void);

/* Takes what lies in it; -1: nothing. */
void sleeper_drain(int fd);

/* Enters it in the list, and takes it out. */
void sleeper_enter(struct sleeper **list, struct sleeper *me);
void sleeper_leave(struct sleeper *me);

/* Has all of the list but this thread look again. */
void sleepers_wake(const struct sleeper *list);
