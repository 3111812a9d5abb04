/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints that a child inherited by fork, or its children from it.  The queue pair stays where it
 * was made: the heir asks the process that made the endpoint to make the call for it, by a socket
 * that comes with the fork and that all descendants share.  With each question goes the fd, which
 * proves that the heir has the endpoint and by which readiness is kept true for all, and a socket
 * for the answer.  The endpoint ends with the process that made it, whoever has the fd.
 *
 * All calls of the heir return what the function of that name would; -EOPNOTSUPP: nobody can be
 * asked; -ECONNRESET: that process is gone.  They wait while it is stopped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scif/ep/node.h"

struct rma_args;
struct scif_ep;

/*
 * Around a fork; wanted: some endpoint of ours is open.  -1, or the socket to the child that the
 * parent's thread watches, and ends.
 */
void heir_before_fork(bool wanted);
int heir_parent_forked(void);
void heir_end(int sock);
/* In the child: endpoints that were ours until now are asked for there. */
void heir_child_forked(void);
void heir_adopt(struct scif_ep *ep);

/* ---- the heir (heir_call.c) ---- */

int heir_send(struct scif_ep *ep, int fd, const uint8_t *msg, int len, bool block);
int heir_recv(struct scif_ep *ep, int fd, uint8_t *msg, int len, bool block);
int heir_bind(struct scif_ep *ep, int fd, uint16_t pn);
int heir_listen(struct scif_ep *ep, int fd, int backlog);
int heir_connect(struct scif_ep *ep, int fd, struct scif_id dst, bool block);
/* The new endpoint is the asked process's too, and we are its heir. */
int heir_accept(struct scif_ep *ep, int fd, bool block, struct scif_id *peer);
/* The memory is ours: what weft_share_export() takes; other memory: -EOPNOTSUPP. */
int64_t heir_register(
	struct scif_ep *ep, int fd, void *addr, size_t len, int64_t off, int prot, int flags);
int heir_unregister(struct scif_ep *ep, int fd, int64_t off, size_t len);
/* Copies of memory that is no window go through a buffer, and are always synchronous. */
int heir_copy(struct scif_ep *ep, int fd, const struct rma_args *args);
int heir_mark(struct scif_ep *ep, int fd, int flags, int *mark);
int heir_wait(struct scif_ep *ep, int fd, int mark);
int heir_signal(struct scif_ep *ep, int fd, int64_t loff, uint64_t lval, int64_t roff,
	uint64_t rval, int flags);
/* The heir gave the endpoint up: what it lent to windows goes when they do. */
void heir_forget(struct scif_ep *ep);

/* ---- the process that made it (heir_serve.c) ---- */

/* Takes one question that came by that socket; false: nobody asks there any more. */
bool heir_asked(int sock);
