/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stand-in: a connected AF_UNIX socket that is the fd which the program holds, so that poll(2),
 * dup(2), fork() and close(2) are the kernel's.  It carries no data.  The library keeps the other
 * end and no duplicate of the program's, so that the end of the last duplicate shows there.  A byte
 * that we send makes the program's fd readable; bytes of its own that nobody takes make it not
 * writable.  It is known by its inode, whatever number the program gave it.
 *
 * The caller locks.  System calls that a path shim wraps go past it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct standin {
	uint64_t ino; /* of the program's end */
	int sock;     /* ours, -1: none */
	bool marked;  /* it is readable */
	bool filled;  /* it is not writable */
	bool hung_up;
};

/* Makes the pair: *fd is the program's end, neither readable nor writable.  -errno. */
int standin_open(struct standin *s, int *fd);
/* Closes our end, if there is one. */
void standin_close(struct standin *s);
/* As before standin_open(); the program's end is closed. */
void standin_undo(struct standin *s);
/* Are all duplicates of the program's end closed, in all processes? */
bool standin_closed(const struct standin *s);

/* Makes the program's end readable, writable, hung up for ever, if it is not. */
void standin_mark(struct standin *s);
void standin_unfill(struct standin *s);
void standin_hang_up(struct standin *s);
/* The reverse of the first two, by a caller that was passed fd, which may be another by now. */
void standin_unmark(struct standin *s, int fd);
void standin_fill(struct standin *s, int fd);
