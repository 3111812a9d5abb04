/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions of memory that the program shares by an object of its own (pages/backing.h): the owner's
 * side.  Nothing has to be moved; peers map the object, of which the segment has a record.  The
 * caller holds the lock of share_state.h.
 */
#pragma once

#include "hca/obj/mr.h"

/*
 * If all of mr's memory is one stretch of a memfd or a System V segment that peers can map, enters
 * the object into the records, or counts one use more, and tells mr's entry where it lies.  For an
 * export any file will do of which a descriptor can be had, among those that are open, from the
 * kernel or by its name, whether it can become shorter or not (pages/piece.h).
 * SHARE_MAPPED; why not; SHARE_REASONS: it is no such memory.  May ask weftd.
 */
enum share_reason share_backing_take(struct hca_mr *mr);

/* Nobody reaches mr by its backing any more: gives it back.  May tell weftd. */
void share_backing_drop(struct hca_mr *mr);

/* In a forked child, whose regions are gone. */
void share_backing_forked_child(void);
