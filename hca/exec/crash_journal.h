/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory under the power-failure simulator (weft-crash(1)): the journal of a process.  It opens the
 * one that JOURNAL_ENV names, and no other: a file that a peer chose could be made shorter under
 * us. Its segment says which one it is, and its queue pairs and the regions whose writes count are
 * marked, so that whoever executes requests for them notes what he does (hca/exec/journaled.h) if
 * he keeps the same journal, and is refused if not.  Others pay for it by bits of words that they
 * read anyway.
 */
#pragma once

#include "crash/journal.h"
#include "hca/seg/view.h"

/* This process attached: opens its journal, if it is to keep one, and says so in the segment. */
void crash_attach(struct seg *seg);

/* In a forked child. */
void crash_forked_child(void);

/* The journal of this process; NULL: it keeps none. */
struct journal *crash_own_journal(void);

/* What a queue pair of this process has in seg_qp.access besides: QPA_JOURNALED or 0. */
uint32_t crash_qp_access(void);

/*
 * 0, and in *j the journal of v's process, which lives as long as we do, or NULL: it has none.
 * -EXDEV: it has one that is not ours, so that we cannot note what we do; the log says so.
 */
int crash_journal(const struct view *v, struct journal **j);
