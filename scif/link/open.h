/* SPDX-License-Identifier: BSD-3-Clause */
/* An endpoint gets its fd. */
#pragma once

struct scif_ep;

/*
 * Gives it its fd, close-on-exec, which is returned, and enters it into the table.  Where it fails
 * the endpoint is as before and it may be called again.
 */
int ep_open(struct scif_ep *ep);
