/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions of this process that are registered for persistent flushes: the owner's side. */
#pragma once

#include "pages/durable.h"

/*
 * Finds out what a region that is being registered consists of, if its rights make that matter, and
 * says so in the log.
 */
enum durability persist_kind(uint64_t addr, uint64_t len, unsigned access);

/* The bits of enum seg_mr_flags for it. */
uint32_t persist_flags(enum durability kind);

/* Counts a region of that kind that comes or goes, and holds the agent that serves its flushes. */
void persist_add(enum durability kind);
void persist_remove(enum durability kind);
