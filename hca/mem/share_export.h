/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that is mapped for another program, whatever regions there are (hca/mem/export.h). */
#pragma once

#include "hca/mem/share_state.h"

/*
 * Maps mr, an export: its index and address are set, whole pages.  Whatever the policy wants, but
 * not against WEFT_SHARE=never (SHARE_NO_ARENA).  SHARE_MAPPED, or why it cannot be, counted.
 */
enum share_reason share_export(struct hca_mr *mr);

/*
 * mr is an export that nobody can begin to map any more; it belongs to this file from here on,
 * which frees it (export_free()) once nobody maps it.  Until then its pages stay shared; with
 * revoke they are taken back at once, and that place is not mapped again until then.  False: they
 * could not be, as a stopped peer is using a region there.
 */
bool share_unexport(struct hca_mr *mr, bool revoke);
