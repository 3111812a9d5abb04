/* SPDX-License-Identifier: BSD-3-Clause */
/* The fd of an endpoint and what poll(2) sees on it (ep.h says how). */
#pragma once

#include <stdbool.h>

struct scif_ep;

/* Makes the socket pair: *fd is the program's end, neither readable nor writable. */
int ready_open(struct scif_ep *ep, int *fd);
/* As before ready_open(); the program's end is closed.  Under the lock. */
void ready_undo(struct scif_ep *ep);
/* Are all duplicates of the program's end closed? */
bool ready_closed(struct scif_ep *ep);

/* Makes the fd readable, writable, hung up, if it is not; under the lock. */
void ep_mark(struct scif_ep *ep);
void ep_unfill(struct scif_ep *ep);
void ep_hang_up(struct scif_ep *ep);
/* The reverse of the first two, by a caller that was passed fd; under the lock. */
void ep_unmark(struct scif_ep *ep, int fd);
void ep_fill(struct scif_ep *ep, int fd);
