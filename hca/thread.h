/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <pthread.h>

/*
 * Starts a thread of our own, to be joined or detached: it takes no signals, which are the
 * program's, and has a small stack where the program's thread-local data allow.  0 or an errno
 * (positive, as pthread_create() has it).
 */
int thread_start(pthread_t *thread, void *(*main)(void *), void *arg);
