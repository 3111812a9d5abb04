/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Abstract names of sockets: they belong to a network namespace, go with the last descriptor of
 * their socket, and anybody may take one that is free.
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

/* The address of that name, which is cut off if it is too long; its length. */
socklen_t unix_name_addr(const char *name, struct sockaddr_un *addr);

/* A new socket of that type, CLOEXEC, non-blocking, that has the name.  -EADDRINUSE: it is taken.
 */
int unix_name_take(const char *name, int type);

/* The same of type SOCK_SEQPACKET, and it listens. */
int unix_name_listen(const char *name, int backlog);

/* Accepts one connection of a socket that listens, if there is one, and closes it. */
void unix_name_greet(int fd);

/*
 * A new socket, CLOEXEC, non-blocking, that is connected to who has the name.  -ECONNREFUSED:
 * nobody has it, or it takes no connections; -EAGAIN: too many wait there already.
 */
int unix_name_meet(const char *name, int type);

/* The same where somebody listens; *cred: who made that socket, as the kernel tells. */
int unix_name_meet_listener(const char *name, struct ucred *cred);

/* Whose socket that is which has the name, as the kernel tells; false: it does not. */
bool unix_name_owner(const char *name, uid_t *uid);

/*
 * Shows `each` all names with that prefix of sockets here that listen, as text that may be
 * anything; ends when it returns false.  Does not block.
 */
void unix_names_each(const char *prefix, bool (*each)(void *arg, const char *name), void *arg);
