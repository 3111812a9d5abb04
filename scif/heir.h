/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints that a child inherited by fork.  The queue pair is its parent's: the child asks the
 * parent's service thread, by a socket that both have since the fork, to send and to receive.  It
 * passes its fd along, which proves that it has the endpoint, and by which the thread keeps
 * readiness true for both.  The endpoint ends with the parent's process, whoever has the fd.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct scif_ep;

/*
 * Around a fork; wanted: some endpoint is open.  -1, or the socket to the child that the parent's
 * thread watches, and ends.
 */
void heir_before_fork(bool wanted);
int heir_parent_forked(void);
void heir_end(int sock);
/* In the child: endpoints that were ours until now are asked for there. */
void heir_child_forked(void);
void heir_adopt(struct scif_ep *ep);

/* The child: as stream_send() and stream_recv(); blocks while the parent is stopped. */
int heir_send(struct scif_ep *ep, int fd, const uint8_t *msg, int len, bool block);
int heir_recv(struct scif_ep *ep, int fd, uint8_t *msg, int len, bool block);

/* The parent: answers one question that came by that socket; false: nobody asks there any more. */
bool heir_asked(int sock);
