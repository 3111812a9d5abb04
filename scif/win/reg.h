/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows: registering, what the peer says of its own, and giving them up. */
#pragma once

#include "scif/ep/ep.h"

struct scif_pinned_pages;

/* scif_register(), scif_unregister(), without conversion of errors. */
int64_t reg_register(struct scif_ep *ep, void *addr, size_t len, int64_t off, int prot, int flags);
int reg_unregister(struct scif_ep *ep, int64_t off, size_t len);
/* The same for pages that another process exports, and of which that is all that is known. */
int64_t reg_import(struct scif_ep *ep, const struct weft_share_handle *handle, size_t len,
	int64_t off, int prot, int flags);
/* Are the arguments of scif_register() good?  -EINVAL. */
int reg_check(const void *addr, size_t len, int64_t off, int prot, int flags);

/* A message about windows came.  -EPROTO.  Under the lock. */
int reg_told(struct scif_ep *ep, const struct wire_ctl *ctl);
/* References of windows went: gives up those that are closed.  Under the lock. */
void reg_unused(struct scif_ep *ep);

/* Handles of scif_pin_pages(). */
int pin_pages(void *addr, size_t len, int prot, int flags, struct scif_pinned_pages **pinned);
int unpin_pages(struct scif_pinned_pages *pinned);
int64_t reg_pinned(struct scif_ep *ep, struct scif_pinned_pages *pinned, int64_t off, int flags);
