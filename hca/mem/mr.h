/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions, whatever they are made of. */
#pragma once

#include "hca/obj/mr.h"

/* Adds a region that was checked; -ENOMEM, -EINVAL for a PD of the process we were forked from. */
int mr_add(struct hca_pd *pd, const struct mr_region *r, struct hca_mr **mr);

/*
 * Adds a region whose kind was found.  If it is a client's it lives afterwards; if that fails, what
 * was claimed is given back: errors as mr_add(), and -EINVAL, its client took it away meanwhile.
 */
int mr_add_found(struct hca_pd *pd, const struct mr_region *r, struct hca_mr **mr);

/* The access flags asked for with that range: 0, or -EINVAL, which the log explains. */
int mr_check_access(uint64_t addr, uint64_t length, unsigned access);

/* An empty one with an entry in the table, for mr_add() and exports; -ENOMEM. */
int mr_new(struct hca_mr **mr);

/* The first key of a table entry; each use of the entry begins with another one. */
uint32_t mr_next_key(uint32_t index);
