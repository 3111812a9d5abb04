/* SPDX-License-Identifier: BSD-3-Clause */
/* Which scenarios are run with a client. */
#pragma once

#include "cli/peercheck/run.h"

struct plan {
	struct scenario *list;
	size_t count, room;
};

/*
 * Finds out what the client is, in processes of its own: its record, to be freed, with the
 * generation that it is checked as, which is wanted, or 0 for its own.  NULL, after printing why.
 */
struct record *plan_probe(const struct run *run, char wanted);

/*
 * All scenarios, in the order in which they are judged; quick: some of those that there are for
 * each point.  both: the device has two ways of freeing.  0 or -ENOMEM.
 */
int plan_make(struct plan *plan, const struct record *probe, bool quick, bool both);
