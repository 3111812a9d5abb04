// SPDX-License-Identifier: BSD-3-Clause
/* Explores all models; fails if one breaks or if a mutant survives. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "models.h"

int model_mutant;

static int failed, passed, open_ended;
static bool traces, slow_too;

static void report(const struct model_case *c, const struct mc_result *r, double seconds)
{
	const char *verdict;
	bool good;

	if (r->gave_up && !r->violated) {
		verdict = "too many states: NO VERDICT, nothing found so far";
		good = c->slow;
		open_ended++;
	} else if (c->mutant) {
		verdict = r->violated ? "caught: " : "MUTANT SURVIVED";
		good = r->violated;
	} else {
		verdict = r->violated ? "BROKEN: " : "holds";
		good = !r->violated;
	}
	if (!good)
		failed++;
	else if (!r->gave_up)
		passed++;
	printf("%-8s %-34s %9lu states %9lu ends %6.2f s  %s%s\n", c->model.name, c->name,
		(long)r->states, (long)r->ends, seconds, verdict, r->violated ? r->message : "");
	fflush(stdout);
}

static void run_cases(const struct model_case *cases, const char *filter)
{
	for (const struct model_case *c = cases; c->name; c++) {
		struct mc_result r;
		uint64_t t0 = clock_ns();

		if (filter && strcmp(c->model.name, filter) != 0 && strcmp(c->name, filter) != 0)
			continue;
		if (c->slow && !slow_too)
			continue;
		model_mutant = c->mutant;
		mc_explore(&c->model, &r, traces || !c->mutant);
		report(c, &r, (clock_ns() - t0) / 1e9);
	}
}

int main(int argc, char **argv)
{
	static const struct model_case *const all[] = {token_cases, ticket_cases, slot_cases,
		srq_cases, arm_cases, fired_cases, exec_cases, agent_cases, umad_recv_cases,
		umad_send_cases, umad_tids_cases};
	const char *filter = NULL;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--long"))
			slow_too = true;
		else if (!strcmp(argv[i], "--trace"))
			traces = true;
		else if (argv[i][0] == '-') {
			fprintf(stderr, "usage: model [--long] [--trace] [MODEL or CASE]\n");
			return 2;
		} else
			filter = argv[i];
	}
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		run_cases(all[i], filter);
	if (open_ended)
		printf("%d without a verdict\n", open_ended);
	printf("%d passed, %d failed\n", passed, failed);
	return failed || !passed;
}
