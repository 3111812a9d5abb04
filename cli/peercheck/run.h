/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs scenarios, each in a process of its own, several at a time. */
#pragma once

#include <stddef.h>

#include "cli/peercheck/scenario.h"
#include "cli/peercheck/subject.h"

enum outcome {
	OUTCOME_OK,
	OUTCOME_BROKEN,
	OUTCOME_SKIPPED,
	OUTCOME_ERROR, /* it could not be judged: the client cannot be loaded, its device crashes */
};

struct result {
	enum outcome outcome;
	struct record *record; /* kept unless it is OK; free() it */
	unsigned rule;         /* broken, 0: none */
};

struct run {
	struct subject_spec spec; /* but for letter and old_freeing, which scenarios have */
	unsigned jobs;
	bool progress; /* on stderr, once it takes some seconds */
	bool keep_going;
};

/*
 * Fills result[i] in for each of n scenarios.  Of a generation under which the client breaks a rule
 * later stages are skipped, without a record, unless it is to keep going; but not races, as long as
 * they do not hang again and again.
 */
void run_all(const struct run *run, const struct scenario *list, size_t n, struct result *result);

/* Runs one by itself: its record, to be freed; NULL: no memory. */
struct record *run_one(const struct run *run, const struct scenario *s, enum outcome *outcome);
