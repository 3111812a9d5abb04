/* SPDX-License-Identifier: BSD-3-Clause */
/* File descriptors of a library's own, which the program may close under it. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

/*
 * An fd of ours in a process that is not ours: the program may have closed it (closefrom) and
 * even have the number in use for something else.
 */
struct own_fd {
	int fd; /* -1: none */
	dev_t dev;
	ino_t ino;
};

#define OWN_FD_NONE ((struct own_fd){.fd = -1})

/*
 * What own_fd_ok() cannot see: all eventfds have one inode in common, and before Linux 6.9 all
 * pidfds.  If the program closes ours and gets another eventfd under the same number, that one
 * passes for ours.  High numbers make it unlikely, as the kernel gives the lowest that is free.
 *
 * Takes over fd, moved to a high number out of the way of select() and of programs that count
 * on low ones; -1 gives none.
 */
struct own_fd own_fd(int fd);
/* The same, but the number stays. */
struct own_fd own_fd_at(int fd);
/* True while the fd is still open and what it was. */
bool own_fd_ok(const struct own_fd *o);
/* Closes it if it is still ours. */
void own_fd_close(struct own_fd *o);
