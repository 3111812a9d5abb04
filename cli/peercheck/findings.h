/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the client does wrong, each thing once.  Scenarios come in order, each asking for more than
 * those before it: what one of them saw and a later one sees again is counted there.
 */
#pragma once

#include "cli/peercheck/report.h"

struct finding {
	unsigned rule;
	size_t scenario;         /* the first in which it was seen */
	const struct record *of; /* its record */
	unsigned also;           /* further scenarios */
	unsigned after;          /* a rule that was broken before this was tried; 0: none */
};

enum { FINDINGS = 64 };

struct findings {
	struct finding list[FINDINGS];
	unsigned count;
};

enum verdict { VERDICT_PASS, VERDICT_FAIL, VERDICT_NOT_RUN };

/* In the client's own generation. */
void findings_collect(const struct report *r, struct findings *f);

/* Of a rule; *why, for those not run. */
enum verdict findings_verdict(
	const struct report *r, const struct findings *f, unsigned rule, const char **why);

/* The rule that is broken first under that generation; 0: it works there. */
unsigned findings_generation(const struct report *r, char letter);
