/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two threads of a scenario, without regard to time: the first one stops at a point of its life
 * until the second one has done what it does, or waits itself: for a lock of the client's, or
 * inside the core, in the callback.
 */
#pragma once

#include <stdbool.h>

struct pair {
	unsigned at; /* the point, from 1: where the first one stops; 0: nowhere */
	void (*second)(void *arg);
	void *arg;
	bool hold; /* the callback is held up until pair_join() */
};

/* Of this thread's points from now on the one is waited for. */
void pair_begin(const struct pair *p);

/* Waits for the second thread's end, if it has begun and is not held up. */
void pair_settle(void);

/* The second thread's end; starts it if the point did not come.  False: it did not come. */
bool pair_join(void);

/* How many points this thread has come to since pair_begin(). */
unsigned pair_points(void);
