/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <pthread.h>

enum thread_stack {
	THREAD_SMALL,    /* for our own code alone: 256 KiB, where the program's thread-local data
			    allow */
	THREAD_CALLBACKS /* as large as a thread of the program's, whose functions it calls */
};

/*
 * Starts a thread of our own, to be joined or detached: it takes no signals, which are the
 * program's.  name: up to 15 bytes, NULL: the program's.  0 or an errno (positive, as
 * pthread_create() has it).
 */
int thread_start(pthread_t *thread, const char *name, enum thread_stack stack,
	void *(*main)(void *), void *arg);

/*
 * The calling thread runs for moments at a time: once it has something to do it is to get a CPU
 * soon, though others compute.  From Linux 6.12 on it asks for the shortest slice of time, so that
 * it goes before threads with longer ones; before, it does nothing.  Takes no right; never fails.
 */
void thread_runs_briefly(void);
