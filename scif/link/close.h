/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of an endpoint. */
#pragma once

struct scif_ep;

/* Takes down an endpoint whose fd is closed: flushes, disconnects, frees.  May block 2 s. */
void ep_close(struct scif_ep *ep);
/* Ends a request, which has no fd, and gives its reference back.  Without locks; may block. */
void ep_refuse(struct scif_ep *ep);
