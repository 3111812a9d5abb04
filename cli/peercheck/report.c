// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/report.h"

#include <jansson.h>
#include <stdio.h>

#include "cli/common/say.h"
#include "cli/peercheck/findings.h"

static const char unwatched[] =
	"without libweftkshim its memory and locks are not watched: of P12, P18 and P22 only what "
	"the device and crashes show";
static const char *const verdicts[] = {"pass", "FAIL", "not run"};

static unsigned recorded(const struct record *r)
{
	return r->calls < RECORD_CALLS ? r->calls : RECORD_CALLS;
}

static void repeat_command(const struct report *r, const struct finding *f, char *to, size_t size)
{
	const char letter[] = {r->probe->letter, '\0'};
	const bool known = *letter != 'W';

	snprintf(to, size, "weft peercheck%s%s --device %s --only %s %s",
		known ? " --generation " : "", known ? letter : "", r->run->spec.device,
		r->plan->list[f->scenario].id, r->run->spec.client);
}

/* ---- text ---- */

static void print_calls(const struct record *r)
{
	for (unsigned i = 0; i < recorded(r); i++)
		printf("      %4u  %*s%s%s\n", i + 1, 2 * r->call[i].depth, "",
			r->call[i].thread > 1 ? "(other thread) " : "", r->call[i].text);
	if (r->calls > RECORD_CALLS)
		printf("            and %u more\n", r->calls - RECORD_CALLS);
}

static void print_finding(const struct report *r, const struct finding *f)
{
	char command[512];

	printf("\nP%u, scenario %s: %s\n", f->rule, r->plan->list[f->scenario].id, f->of->text);
	print_calls(f->of);
	if (f->also)
		printf("      seen in %u further scenarios\n", f->also);
	if (f->after)
		printf("      it may follow from P%u, above\n", f->after);
	repeat_command(r, f, command, sizeof command);
	printf("      repeat: %s\n", command);
}

static void print_rules(const struct report *r, const struct findings *f)
{
	for (unsigned rule = 1; rule <= RULES; rule++) {
		const char *why = NULL;
		const enum verdict v = findings_verdict(r, f, rule, &why);

		printf("P%-3u %-8s %s%s%s%s\n", rule, verdicts[v], rule_text(rule), why ? " (" : "",
			why ? why : "", why ? ")" : "");
	}
}

static void print_generations(const struct report *r)
{
	printf("\ngenerations:");
	for (char letter = 'A'; letter <= 'E'; letter++) {
		const unsigned rule = findings_generation(r, letter);

		printf(" %c%s ", letter, letter == r->probe->letter ? " (its own)" : "");
		if (rule)
			printf("breaks P%u%s", rule, letter < 'E' ? "," : "\n");
		else
			printf("works%s", letter < 'E' ? "," : "\n");
	}
}

static unsigned count_errors(const struct report *r)
{
	unsigned n = 0;

	for (size_t i = 0; i < r->plan->count; i++)
		n += r->result[i].outcome == OUTCOME_ERROR;
	return n;
}

static const char *first_error(const struct report *r)
{
	size_t i = 0;

	while (i < r->plan->count && r->result[i].outcome != OUTCOME_ERROR)
		i++;
	if (i == r->plan->count || !r->result[i].record)
		return "no process for them";
	return r->result[i].record->text;
}

static void print_text(const struct report *r, const struct findings *f)
{
	printf("%s: %s, generation %c, device %s\n", r->run->spec.client, r->probe->client,
		r->probe->letter, r->run->spec.device);
	print_rules(r, f);
	if (!r->probe->kshim)
		printf("note: %s\n", unwatched);
	for (unsigned i = 0; i < f->count; i++)
		print_finding(r, &f->list[i]);
	if (r->plan->count > 1)
		print_generations(r);
	printf("%zu scenarios, %u violations\n", r->plan->count, f->count);
}

/* ---- JSON ---- */

static json_t *rules_as_json(const struct report *r, const struct findings *f)
{
	json_t *list = json_array();

	for (unsigned rule = 1; rule <= RULES; rule++) {
		const char *why = "";
		const enum verdict v = findings_verdict(r, f, rule, &why);

		json_array_append_new(
			list, json_pack("{s:i, s:s, s:s, s:s}", "rule", rule, "text",
				      rule_text(rule), "result", verdicts[v], "why", why));
	}
	return list;
}

static json_t *calls_as_json(const struct record *r)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < recorded(r); i++)
		json_array_append_new(
			list, json_pack("{s:i, s:i, s:s}", "thread", r->call[i].thread, "depth",
				      r->call[i].depth, "call", r->call[i].text));
	return list;
}

static json_t *findings_as_json(const struct report *r, const struct findings *f)
{
	json_t *list = json_array();
	char command[512];

	for (unsigned i = 0; i < f->count; i++) {
		const struct finding *at = &f->list[i];

		repeat_command(r, at, command, sizeof command);
		json_array_append_new(
			list, json_pack("{s:i, s:s, s:s, s:o, s:i, s:i, s:s}", "rule", at->rule,
				      "scenario", r->plan->list[at->scenario].id, "text",
				      at->of->text, "calls", calls_as_json(at->of), "also",
				      at->also, "after", at->after, "repeat", command));
	}
	return list;
}

static json_t *generations_as_json(const struct report *r)
{
	json_t *all = json_object();

	for (char letter = 'A'; letter <= 'E'; letter++) {
		const char name[] = {letter, '\0'};

		json_object_set_new(all, name, json_integer(findings_generation(r, letter)));
	}
	return all;
}

static void print_json(const struct report *r, const struct findings *f)
{
	const char letter[] = {r->probe->letter, '\0'};
	json_t *all = json_pack("{s:s, s:s, s:s, s:s, s:b, s:i, s:o, s:o, s:o}", "client",
		r->run->spec.client, "name", r->probe->client, "generation", letter, "device",
		r->run->spec.device, "watched", r->probe->kshim, "scenarios", (int)r->plan->count,
		"rules", rules_as_json(r, f), "violations", findings_as_json(r, f),
		"broken_in_generation", generations_as_json(r));

	json_dumpf(all, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(all);
}

int report_print(const struct report *r)
{
	static struct findings f;
	const unsigned errors = count_errors(r);

	findings_collect(r, &f);
	if (r->json)
		print_json(r, &f);
	else
		print_text(r, &f);
	if (cli_written())
		return EXIT_FAILED;
	if (errors) {
		cli_fail("%u scenarios could not be run: %s", errors, first_error(r));
		return EXIT_USAGE;
	}
	return f.count ? EXIT_FAILED : EXIT_OK;
}
