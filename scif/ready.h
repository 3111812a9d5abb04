/* SPDX-License-Identifier: BSD-3-Clause */
/* The fd of an endpoint and what poll(2) sees on it (ep.h says how). */
#pragma once

#include <stdbool.h>

struct scif_ep;

/* Makes the socket pair: *fd is the program's end, neither readable nor writable. */
int ready_open(struct scif_ep *ep, int *fd);
/* Are all duplicates of the program's end closed? */
bool ready_closed(struct scif_ep *ep);
