/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory under the power-failure simulator (weft-crash(1)): the side of the process whose it is,
 * and finding its journal.  A process that is started with JOURNAL_ENV set names the journal in its
 * segment, and marks its queue pairs and the regions whose writes count, so that whoever executes
 * requests for them notes what he does (hca/exec_crash.h).  Others pay for it by bits of words that
 * they read anyway.
 */
#pragma once

#include "crash/journal.h"
#include "hca/objects.h"
#include "hca/view.h"

/* Which regions: all that peers may write, or those that can be persistent (the default). */
#define CRASH_REGIONS_ENV "WEFT_CRASH_REGIONS"

/* This process attached: names its journal in the segment, if it is to keep one. */
void crash_attach(struct seg *seg);

/* In a forked child. */
void crash_forked_child(void);

/*
 * mr, with these flags (enum seg_mr_flags), is about to get its key: MR_JOURNALED if it is under
 * the simulator, and then its contents are in the journal; else 0.
 */
uint32_t crash_region(const struct hca_mr *mr, uint32_t flags);

/* What a queue pair of this process has in seg_qp.access besides: QPA_JOURNALED or 0. */
uint32_t crash_qp_access(void);

/*
 * The journal of v's process, which lives as long as we do; NULL if it has none or it cannot be
 * opened, which the log says once.  May block to open a file.
 */
struct journal *crash_journal(const struct view *v);
