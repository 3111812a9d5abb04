/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that another process shares by an object of its own, as we reach it: the other side of
 * hca/mem/share_backing.h.
 */
#pragma once

#include "hca/seg/view.h"

/*
 * Where [offset, offset+len) of backing id of v's process is mapped here; maps it if need be. NULL:
 * it cannot be, now.  May ask weftd the first time.
 */
void *view_backing_reach(const struct view *v, uint32_t id, uint64_t offset, uint64_t len);

/*
 * After it could not be reached: is that because weftd, dead or just starting, does not know the
 * object, for less than 5 s?  Then it is worth to try again soon.
 */
bool view_backing_later(const struct view *v);

/*
 * The object that v's process shares under that id, to be mapped by us: b->fd, where it is one of a
 * file, is the caller's then.  -ESTALE: it is gone; -EAGAIN: weftd was started anew, and the owner
 * has not told it yet; errors of rdv/rdv.h.  May ask weftd.
 */
int view_backing_get(const struct view *v, uint32_t id, struct backing *b);

/* Lets go of what v's process does not share any more. */
void view_backing_sweep(const struct view *v);

/* Has this process ever mapped such memory? */
bool view_backing_any(void);
