/* SPDX-License-Identifier: BSD-3-Clause */
/* Fences: marks, waiting for them, and stores that follow copies. */
#pragma once

#include "scif/ep/ep.h"

/* scif_fence_mark(), _wait() and _signal() without conversion of errors. */
int fence_mark(struct scif_ep *ep, int flags, int *mark);
int fence_wait(struct scif_ep *ep, int mark);
int fence_signal(
	struct scif_ep *ep, int64_t loff, uint64_t lval, int64_t roff, uint64_t rval, int flags);

/* The peer asks for a mark, a wait or a signal.  -EPROTO.  Under the lock. */
int fence_asked(struct scif_ep *ep, const struct wire_ctl *ctl);
/* Writes 8 bytes to our window at off.  Under the lock. */
void fence_store(struct scif_ep *ep, uint64_t off, uint64_t val);
