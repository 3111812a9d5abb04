/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of this process that others may map: the owner's side of include/weft/share.h.  An export
 * is an entry of the table of regions that no request can use (protection domain 0).  Who wants to
 * map it looks whether its key is still there, after he has entered himself into the owner's list
 * of imports; who takes it away takes the key first and looks at that list afterwards.
 */
#pragma once

#include "hca/obj/mr.h"

#define EXPORT_MAGIC 0x52485357u /* as bytes: "WSHR" */

/* What a program hands to its peer: struct weft_share_handle. */
struct export_handle {
	uint32_t magic;
	uint32_t attach; /* of the owner */
	uint32_t key;
	uint32_t zero;
	uint64_t arena; /* inode of the owner's arena */
	uint64_t length;
};

/*
 * Exports [addr, addr+length), whole pages of private writable memory, which moves into the arena,
 * or of an object that this process shares already, which stays what it is.  May wait as
 * hca_mr_reg(). Errors as weft_share_export(3); those of rdv/rdv.h.
 */
int hca_export(void *addr, uint64_t length, bool writable, struct export_handle *handle,
	struct hca_mr **out);

/*
 * Ends the export; it may not be used again.  revoke: those who have mapped it lose it.  -EBUSY:
 * so it is, but a stopped peer kept the pages from being taken back, or they are of an object.
 */
int hca_unexport(struct hca_mr *mr, bool revoke);

/* Nobody maps what mr exported: frees it and its entry. */
void export_free(struct hca_mr *mr);
