// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/say.h"

enum { QUICK_STEP = 7 };

/* ---- the probe ---- */

static struct record *probe_as(const struct run *run, char letter)
{
	static const struct scenario_kind kind = {
		FAMILY_REGION, "probe", "", scenario_probe, NULL, false};
	const struct scenario s = {.kind = &kind, .letter = letter};
	enum outcome outcome;
	struct record *r = run_one(run, &s, &outcome);

	if (r && outcome != OUTCOME_ERROR && !r->loading[0])
		return r;
	if (r && outcome != OUTCOME_ERROR)
		cli_fail("cannot check %s: a process that loads %s %s", run->spec.client,
			strcmp(r->loading, run->spec.client) ? r->loading : "it", r->text);
	else
		cli_fail(
			"cannot check %s: %s", run->spec.client, r ? r->text : "no process for it");
	free(r);
	return NULL;
}

struct record *plan_probe(const struct run *run, char wanted)
{
	struct record *r = probe_as(run, wanted ? wanted : 'W');
	const char letter = r ? r->letter : 'W';

	if (!r || wanted || letter == 'W') {
		if (r)
			r->letter = wanted ? wanted : 'W';
		return r;
	}
	free(r);
	r = probe_as(run, letter);
	if (r)
		r->letter = letter;
	return r;
}

/* ---- the list ---- */

static struct scenario *add(struct plan *plan)
{
	struct scenario *list;

	if (plan->count == plan->room) {
		const size_t room = plan->room ? 2 * plan->room : 64;

		list = reallocarray(plan->list, room, sizeof *list);
		if (!list)
			return NULL;
		plan->list = list;
		plan->room = room;
	}
	return &plan->list[plan->count++];
}

static void name(struct scenario *s)
{
	const char *of = s->kind->name;
	int n = snprintf(s->id, sizeof s->id, "%c%s:%s%s%s", s->letter,
		s->old_freeing ? "-old" : "", family_name(s->kind->family), *of ? "." : "", of);

	if (s->number && n > 0 && (size_t)n < sizeof s->id)
		snprintf(s->id + n, sizeof s->id - (size_t)n, ".%u", s->number);
}

static int add_one(struct plan *plan, const struct scenario *like)
{
	struct scenario *s = add(plan);

	if (!s)
		return -ENOMEM;
	*s = *like;
	name(s);
	return 0;
}

static int add_kind(struct plan *plan, struct scenario like, const struct record *probe, bool quick)
{
	unsigned first = 0;
	const unsigned last = like.kind->numbers ? like.kind->numbers(probe, &first) : 0;
	const unsigned step = quick && like.kind->family != FAMILY_NTH ? QUICK_STEP : 1;
	int rc = 0;

	if (!like.kind->numbers)
		return add_one(plan, &like);
	for (like.number = first; like.number <= last && !rc; like.number += step)
		rc = add_one(plan, &like);
	return rc;
}

static int add_own(struct plan *plan, const struct record *probe, bool quick, bool both)
{
	int rc = 0;

	for (unsigned i = 0; i < scenario_kinds() && !rc; i++) {
		struct scenario s = {.kind = scenario_kind(i), .letter = probe->letter};

		rc = add_kind(plan, s, probe, quick);
		s.old_freeing = true;
		if (both && !rc && s.kind->family >= FAMILY_KEEP && (!quick || !s.kind->numbers))
			rc = add_kind(plan, s, probe, quick);
	}
	return rc;
}

static int add_other(struct plan *plan, char letter)
{
	int rc = 0;

	for (unsigned i = 0; i < scenario_kinds() && !rc; i++) {
		const struct scenario s = {.kind = scenario_kind(i), .letter = letter};

		if (s.kind->anywhere)
			rc = add_one(plan, &s);
	}
	return rc;
}

int plan_make(struct plan *plan, const struct record *probe, bool quick, bool both)
{
	int rc;

	*plan = (struct plan){0};
	rc = add_own(plan, probe, quick, both);
	for (char letter = 'A'; letter <= 'E' && !rc; letter++)
		if (letter != probe->letter)
			rc = add_other(plan, letter);
	return rc;
}
