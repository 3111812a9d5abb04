/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that run what others have written, and of which nothing stays.  Each has a keeper for a
 * parent, to which the kernel gives whatever it forks and leaves, in whatever session.  When the
 * process has ended, or is to end, or who started it is gone, the keeper kills all that is left.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum { KEEPERS = 64 }; /* at a time */

enum keeper_state {
	KEEPER_WORKS,
	KEEPER_DONE,    /* the process has ended, and all that it left */
	KEEPER_STOPPED, /* somebody has stopped the keeper */
	KEEPER_KILLED,  /* ... or killed it */
};

/* Seen by both processes. */
struct kept {
	_Atomic pid_t pid;     /* of the process; 0: there is none yet */
	_Atomic int status;    /* with which it ended, as of waitpid(2) */
	_Atomic unsigned left; /* how many processes there were of it then */
};

struct keeper {
	pid_t pid;
	int pidfd; /* readable once it has ended; -1: there is none */
	struct kept *kept;
};

/*
 * Once, before the first of them, in a process that does nothing else: SIGINT, SIGTERM and SIGHUP
 * end it only when all keepers have ended; and what a killed keeper leaves comes to it, unless it
 * had children before, which it could not tell from those.
 */
void keeper_begin(void);

/* Has this process children, whatever signal they end with; those that have ended count. */
bool keeper_has_children(void);

/* Has work(arg), which does not return, done in a process with a keeper.  False: there is none. */
bool keeper_start(struct keeper *k, void (*work)(void *arg), void *arg);

/* How it is; does not block. */
enum keeper_state keeper_look(const struct keeper *k);

/*
 * Ends it, and all that is left of its process, if that has not happened: in some ms, in 5 s if it
 * is kept from it.  Answers the status of the process; *left, how many others there were of it.
 */
int keeper_end(struct keeper *k, unsigned *left);
