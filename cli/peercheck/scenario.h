/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is done with a client, one thing in one process.  A scenario has a family, a name, maybe a
 * number (which call fails, which point it happens at); its ID adds the generation and the
 * device's way of freeing: E:take.live, C-old:point.12.late.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli/peercheck/record.h"

struct scenario_kind {
	enum family family;
	const char *name; /* after the family's */
	const char *what; /* it does, for --list */
	void (*run)(unsigned number);
	/* The last number that it has, by what the probe found, and the first; NULL: none. */
	unsigned (*numbers)(const struct record *probe, unsigned *first);
	bool anywhere; /* one of the few that run for each generation */
};

struct scenario {
	const struct scenario_kind *kind;
	unsigned number; /* from 1; 0: it has none */
	char letter;
	bool old_freeing;
	char id[56];
};

/* How many kinds there are; the ith. */
unsigned scenario_kinds(void);
const struct scenario_kind *scenario_kind(unsigned i);

/* What others are numbered by: a plain life, of which the points and calls are noted. */
void scenario_probe(unsigned number);

/* Runs it in this process, which is its own, and fills the record in. */
void scenario_run(const struct scenario *s);
