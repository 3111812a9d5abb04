/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows of the peer in our address space, where the verbs library can do that (scif/ep/share.h):
 * the owner exports a window when it is first mapped.  What is mapped outlives the window and the
 * connection.
 */
#pragma once

#include "scif.h"
#include "scif/ep/ep.h"

/* scif_mmap(), scif_munmap(), scif_get_pages() and scif_put_pages() without conversion of errors.
 */
int map_window(struct scif_ep *ep, void *addr, size_t len, int prot, int flags, int64_t off,
	void **mapped);
int unmap_window(void *addr, size_t len);
/* Does a window lie there? */
bool map_holds(const void *addr, size_t len);
int map_get_pages(struct scif_ep *ep, int64_t off, size_t len, struct scif_range **pages);
int map_put_pages(struct scif_range *pages);

/* The peer asks for a window of ours.  Under the lock. */
int map_asked(struct scif_ep *ep, const struct wire_ctl *ctl);
/* In a forked child, which has no mappings. */
void map_forked(void);
