/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The system thread: callbacks other than those of transfers run there, and what may block.  Jobs
 * run one after the other in the order of their posting; while one waits for a peer, another thread
 * takes the jobs behind it.
 */
#pragma once

#include <stdbool.h>

struct job {
	struct job *next;
	void (*run)(struct job *job); /* may free it */
};

/* Starts the thread if there is none; to be called before jobs are posted.  0 or -EAGAIN. */
int system_start(void);

/* Never fails, never blocks.  The job belongs to the queue until it runs. */
void system_post(struct job *job);

/*
 * Around waiting in a call that a callback may make: lets others run the jobs meanwhile.  -EAGAIN:
 * nobody will, for there is no other thread and none can be started; what needs another callback
 * should not be waited for.  system_unblock() is to be called in either case.
 */
int system_block(void);
void system_unblock(void);

/* After a fork: there is no thread and no job. */
void system_forked(void);
