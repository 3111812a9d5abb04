/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of other processes, or of our own a second time, that this process maps: the other side
 * of hca/mem/export.h.  Each mapping is an entry of the owner's list of imports until all of it is
 * unmapped; weftd strikes out the dead.
 */
#pragma once

#include "hca/mem/export.h"

/* What is to be mapped: [offset, offset+length) of an export, whole pages. */
struct import_wish {
	const struct export_handle *handle;
	uint64_t offset, length;
	int prot;
	void *at;   /* a hint, or where it must be */
	int placed; /* 0, MAP_FIXED or MAP_FIXED_NOREPLACE */
};

/*
 * Maps it; *out: where.  Errors as weft_share_map(3); those of rdv/rdv.h.  May ask weftd.
 */
int hca_import(const struct import_wish *wish, void **out);

/*
 * Unmaps what lies of imports in [at, at+length), whole pages, and nothing else.  -EINVAL: nothing
 * does.
 */
int hca_unimport(void *at, uint64_t length);

/* Does anybody map the export of ours with that key? */
bool import_any(uint32_t key);

/* Is some of [lo, hi) an import? */
bool import_covers(uint64_t lo, uint64_t hi);

/* Is all of [lo, hi) one import of our own arena?  *offset: where lo lies in that. */
bool import_own(uint64_t lo, uint64_t hi, uint64_t *offset);

/* In a forked child, which has none of them. */
void import_forked_child(void);
