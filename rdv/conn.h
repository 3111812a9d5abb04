/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection to weftd: connect, authenticate, call.  No locking: the caller serialises,
 * except that conn_post() may run beside conn_call() on the same connection.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "rdv/paths.h"
#include "rdv/proto.h"

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

struct conn {
	struct own_fd sock;
	int32_t server_pid; /* weftd's, 0 if it has none in our pid namespace */
	uint32_t cookie;
};

#define CONN_NONE ((struct conn){.sock = {.fd = -1}})

/*
 * Connects to the weftd that listens at p.  Blocks up to 5 s if it does not accept.  -ENOTCONN:
 * none listens (not logged); -EACCES: it is another user's; -ETIMEDOUT; -EMFILE and the like
 * (logged once): we are short ourselves.
 */
int conn_open(struct conn *c, const struct rdv_paths *p);
void conn_close(struct conn *c);

/*
 * Sends *msg as a call and waits up to 5 s for its reply in *in.  Returns the reply's status or
 * -EPIPE the connection broke (conn_close() it), -ETIMEDOUT (logged), -EPROTO (logged), -EMFILE.
 * On 0 the caller takes the fds it wants out of *in and calls proto_close().
 */
int conn_call(
	struct conn *c, struct proto_msg *msg, const int *fds, int n_fds, struct proto_in *in);

/* The same with data and without fds. */
int conn_call_data(
	struct conn *c, struct proto_msg *msg, const void *data, size_t len, struct proto_in *in);

/* Sends a one-way message, never blocks.  -EPIPE, -EAGAIN. */
int conn_post(const struct conn *c, struct proto_msg *msg);

/* Waits until weftd has closed the connection.  -ETIMEDOUT after 5 s, logged. */
int conn_wait_end(struct conn *c);
