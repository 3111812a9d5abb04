// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/findings.h"

#include <string.h>

static bool is_own(const struct report *r, size_t i)
{
	return r->plan->list[i].letter == r->probe->letter;
}

/* What was found in an earlier stage, if anything. */
static unsigned found_before(const struct report *r, const struct findings *f, size_t i)
{
	const struct scenario *list = r->plan->list;

	if (!f->count || family_stage(list[f->list[0].scenario].kind->family) >=
				 family_stage(list[i].kind->family))
		return 0;
	return f->list[0].rule;
}

static void add(const struct report *r, struct findings *f, size_t i, const struct result *result)
{
	unsigned k = 0;

	while (k < f->count && strcmp(f->list[k].of->sign, result->record->sign) != 0)
		k++;
	if (k < f->count)
		f->list[k].also++;
	else if (k < FINDINGS)
		f->list[f->count++] = (struct finding){.rule = result->rule,
			.scenario = i,
			.of = result->record,
			.after = found_before(r, f, i)};
}

void findings_collect(const struct report *r, struct findings *f)
{
	f->count = 0;
	for (size_t i = 0; i < r->plan->count; i++)
		if (is_own(r, i) && r->result[i].outcome == OUTCOME_BROKEN && r->result[i].record)
			add(r, f, i, &r->result[i]);
}

static const char *why_not(const struct report *r, unsigned rule)
{
	const char *why = "no call of the client can be made to fail";

	for (size_t i = 0; i < r->plan->count; i++) {
		const struct result *result = &r->result[i];

		if (!is_own(r, i) || !(rule_families(rule) & 1U << r->plan->list[i].kind->family))
			continue;
		if (result->outcome == OUTCOME_SKIPPED && result->record)
			return result->record->skipped;
		why = result->outcome == OUTCOME_SKIPPED
			      ? "the client breaks others before; --keep-going tries it"
			      : "the client breaks others before";
	}
	return why;
}

enum verdict findings_verdict(
	const struct report *r, const struct findings *f, unsigned rule, const char **why)
{
	unsigned ran = 0;

	for (unsigned i = 0; i < f->count; i++)
		if (f->list[i].rule == rule)
			return VERDICT_FAIL;
	for (size_t i = 0; i < r->plan->count; i++)
		if (is_own(r, i) && rule_families(rule) & 1U << r->plan->list[i].kind->family)
			ran += r->result[i].outcome == OUTCOME_OK;
	if (!ran)
		*why = why_not(r, rule);
	return ran ? VERDICT_PASS : VERDICT_NOT_RUN;
}

unsigned findings_generation(const struct report *r, char letter)
{
	for (size_t i = 0; i < r->plan->count; i++)
		if (r->plan->list[i].letter == letter && r->result[i].outcome == OUTCOME_BROKEN)
			return r->result[i].rule;
	return 0;
}
