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
