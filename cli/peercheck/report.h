/* SPDX-License-Identifier: BSD-3-Clause */
/* What came out: each rule, each violation with how it came about, each generation. */
#pragma once

#include <stdbool.h>

#include "cli/peercheck/plan.h"

struct report {
	const struct run *run;
	const struct record *probe;
	const struct plan *plan;
	const struct result *result; /* of each scenario of the plan */
	bool json;
};

/*
 * Prints it.  EXIT_OK; EXIT_FAILED: a rule is broken, or stdout cannot be written; EXIT_USAGE: some
 * could not be run, as it says on stderr.
 */
int report_print(const struct report *r);
