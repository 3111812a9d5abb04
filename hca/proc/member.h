/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is known by a key to the whole fabric: members of multicast groups, XRC domains.  Each
 * process lists its own in its segment; weftd copies them all into its hub, where senders read.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hca/seg/seg.h"

/*
 * Lists id (28 bits) under key in our segment and tells weftd (control path); *index is its
 * place.  -ENOSPC: our list or weftd's is full; or the errors of rdv.
 */
int member_add(enum seg_member_kind kind, uint32_t id, const uint8_t key[16], uint32_t *index);

/* Takes it off the list; gone for all when it returns. */
void member_del(uint32_t index);

/* The place of that entry in our own list, or -1. */
int64_t member_find(enum seg_member_kind kind, uint32_t id, const uint8_t key[16]);

/*
 * The next id under key in the whole fabric, 0: no more.  *at is where to begin, 0 at first.
 * Does not block.
 */
uint32_t member_next(enum seg_member_kind kind, const uint8_t key[16], uint32_t *at);

/* The same of the members that this process has itself. */
uint32_t member_next_own(enum seg_member_kind kind, const uint8_t key[16], uint32_t *at);

/* In a forked child, before anything else: the parent's other threads are gone. */
void member_forked_child(void);

/* Number of entries of kind and id in our own list. */
uint32_t member_count(enum seg_member_kind kind, uint32_t id);
