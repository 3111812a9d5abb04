// SPDX-License-Identifier: BSD-3-Clause
/*
 * libFuzzer: rules of faults with anything in them, up to a NUL, and behind it a packet.  What is
 * read prints as text that reads back as the same; what is refused has a reason of one line.  Rules
 * name acts that can be carried out, whatever the packet is.
 */
#include <stdlib.h>
#include <string.h>

#include "roce/fault/fault.h"

static void must(bool what)
{
	if (!what)
		abort();
}

static void reads_back(const struct fault_rule *r)
{
	char text[FAULT_RULE_TEXT];
	size_t len = fault_print(r, text);
	struct fault_rules again;
	struct fault_error why;

	must(len == strlen(text) && !fault_parse(text, len, &again, &why));
	must(again.n == 1 && !memcmp(&again.rule[0], r, sizeof *r));
}

static void acts(const struct fault_rules *rules, const uint8_t *packet, size_t len)
{
	struct fault_set set;
	struct fault_how how;

	fault_start(&set, rules);
	for (int i = 0; i < 8; i++) {
		enum fault_act act = fault_on(&set, 1 + i % 2, packet, len, &how);

		must(act == FAULT_PASS || how.rule < rules->n);
		must(act != FAULT_FLIP || how.bit < len * 8);
		must(act != FAULT_HOLD || how.hold_ns);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size ? memchr(data, 0, size) : NULL;
	size_t len = end ? (size_t)(end - data) : size;
	struct fault_rules rules;
	struct fault_error why;
	char text[256];

	if (fault_parse((const char *)data, len, &rules, &why)) {
		must(!rules.n && why.why && why.column >= 1 && why.column <= len + 1);
		must(fault_error_text(&why, text, sizeof text) > 0 && !strchr(text, '\n'));
		return 0;
	}
	for (uint32_t i = 0; i < rules.n; i++)
		reads_back(&rules.rule[i]);
	acts(&rules, data + len + (end != NULL), size - len - (end != NULL));
	return 0;
}
