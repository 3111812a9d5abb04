/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that another process shares by an object of its own, as we reach it: the other side of
 * hca/share_backing.h.
 */
#pragma once

#include "hca/view.h"

/*
 * Where [offset, offset+len) of backing id of v's process is mapped here; maps it if need be. NULL:
 * it cannot be, now.  May ask weftd the first time.
 */
void *view_backing_reach(const struct view *v, uint32_t id, uint64_t offset, uint64_t len);

/* Lets go of what v's process does not share any more. */
void view_backing_sweep(const struct view *v);

/* Has this process ever mapped such memory? */
bool view_backing_any(void);
