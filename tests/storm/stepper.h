/* SPDX-License-Identifier: BSD-3-Clause */
/* Stops an agent in the middle of a call, any number of instructions behind its start. */
#pragma once

#include <stdbool.h>

#include "agent.h"

/* Attaches to the agent.  0 or a negative errno: -EPERM, -ENOSYS where that is refused. */
int stepper_attach(struct agent *a);
void stepper_detach(struct agent *a);

/*
 * Waits for the first trap of the call that the agent was told to make, then steps on by n
 * instructions.  *behind: the call had fewer.  Returns the steps made, or a negative errno.
 */
long stepper_into(struct agent *a, long n, bool *behind);

/* Lets it run to the end of the call and beyond. */
int stepper_go_on(struct agent *a, bool behind);

/* ---- any thread of a child of ours ---- */

/* Can threads be stepped here? */
bool stepper_works(void);

/* Stops that thread; 0 or a negative errno. */
int stepper_begin(pid_t tid);

/*
 * Has it make a step at a time, on our CPU, until it ends: true.  False: it made so many, and goes
 * on by itself now.
 */
bool stepper_to_its_end(pid_t tid, long max);
