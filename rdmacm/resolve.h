/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From addresses to paths.  An address of this host is known at once; the way to another host is
 * weftd's to find, which answers by an event.
 */
#pragma once

#include "rdmacm/rdmacm.h"

/* What to ask weftd for id, whose asks is set: at first, and again of a new one. */
struct cm_resolve_call ident_resolve_call(const struct ident *id);

/* Is it an answer that id does not wait for any more? */
bool ident_is_late(const struct ident *id, const struct cm_event *e);

/* The address is resolved, or is not: what the event says of it is the id's. */
void ident_resolved(struct ident *id, const struct cm_event *e);
