/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast groups that queue pairs of this process are in: a socket each, bound to the group's
 * address.  It ends with the process, whereas the socket that packets are steered to outlives it
 * with all that it has joined; nothing else comes to it; and the kernel's limit of groups is one
 * of a socket.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A queue pair has joined, or left; the wire is joined.  Does not block. */
void mcast_join(const uint8_t mgid[16], bool joins);

/* Readable while one of the sockets is; -1: there are none. */
int mcast_fd(void);

/* Some of the sockets that are readable, at most room; how many. */
unsigned mcast_ready(int *fds, unsigned room);

/* False: the program has closed some of it behind our back; there is nothing to read until
 * mcast_mend(). */
bool mcast_whole(void);

/* Opens anew what the program closed. */
void mcast_mend(void);

/* In a forked child: the groups are the parent's. */
void mcast_forked_child(void);
