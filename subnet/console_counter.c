// SPDX-License-Identifier: BSD-3-Clause
#include "subnet/console_counter.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "subnet/console_say.h"
#include "wire/pma.h"

/* By the bit that selects them: the place in struct pma_counters. */
static const char *const classic[PMA_COUNTERS] = {"SymbolErrorCounter", "LinkErrorRecoveryCounter",
	"LinkDownedCounter", "PortRcvErrors", "PortRcvRemotePhysicalErrors",
	"PortRcvSwitchRelayErrors", "PortXmitDiscards", "PortXmitConstraintErrors",
	"PortRcvConstraintErrors", "LocalLinkIntegrityErrors", "ExcessiveBufferOverrunErrors",
	"VL15Dropped", "PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts",
	"PortXmitWait"};

static const char *const extended[PMA_COUNTERS] = {
	[0] = "PortXmitData",
	"PortRcvData",
	"PortXmitPkts",
	"PortRcvPkts",
	"PortUnicastXmitPkts",
	"PortUnicastRcvPkts",
	"PortMultiCastXmitPkts",
	"PortMultiCastRcvPkts",
	[16] = "SymbolErrorCounter",
	"LinkErrorRecoveryCounter",
	"LinkDownedCounter",
	"PortRcvErrors",
	"PortRcvRemotePhysicalErrors",
	"PortRcvSwitchRelayErrors",
	"PortXmitDiscards",
	"PortXmitConstraintErrors",
	"PortRcvConstraintErrors",
	"LocalLinkIntegrityErrors",
	"ExcessiveBufferOverrunErrors",
	"VL15Dropped",
	"PortXmitWait",
	"QP1Dropped",
};

static const char *const rcv_errors[PMA_COUNTERS] = {"PortLocalPhysicalErrors",
	"PortMalformedPacketErrors", "PortBufferOverrunErrors", "PortDLIDMappingErrors",
	"PortVLMappingErrors", "PortLoopingErrors"};

static const char *const xmit_discards[PMA_COUNTERS] = {"PortInactiveDiscards",
	"PortNeighborMTUDiscards", "PortSwLifetimeLimitDiscards", "PortSwHOQLifetimeLimitDiscards"};

static const struct attribute {
	const char *name;
	uint16_t id;
	const struct wire_format *format;
	const char *const *counters;
} attributes[] = {
	{"PortCounters", PMA_PORT_COUNTERS, &pma_counters_format, classic},
	{"PortCountersExtended", PMA_PORT_COUNTERS_EXT, &pma_counters_ext_format, extended},
	{"PortRcvErrorDetails", PMA_RCV_ERROR_DETAILS, &pma_rcv_errors_format, rcv_errors},
	{"PortXmitDiscardDetails", PMA_XMIT_DISCARD_DETAILS, &pma_xmit_discards_format,
		xmit_discards},
};

/* The first ones are those that console_counters() shows. */
enum { SHOWN = 2, ATTRIBUTES = sizeof attributes / sizeof *attributes };

/* Asks the agent of a port; false: it does not like it. */
static bool ask(struct console *c, const struct console_place *at, const struct attribute *a,
	uint8_t method, struct pma_counters *k)
{
	struct mad_hdr h = {.base_version = MAD_BASE_VERSION,
		.mgmt_class = MAD_CLASS_PERF,
		.class_version = PMA_CLASS_VERSION,
		.method = method,
		.attr = a->id};
	uint8_t mad[MAD_SIZE] = {0};

	k->port = at->port;
	wire_pack(&mad_hdr_format, &h, mad);
	wire_pack(a->format, k, mad + PMA_DATA);
	if (subnet_local_pma(c->subnet, at->node, at->port, mad))
		return false;
	wire_unpack(&mad_hdr_format, mad, &h);
	wire_unpack(a->format, mad + PMA_DATA, k);
	return !h.status;
}

static void print_attribute(
	struct console *c, const struct console_place *at, const struct attribute *a)
{
	struct pma_counters k = {0};
	bool any = false;

	if (!ask(c, at, a, MAD_GET, &k))
		return;
	for (unsigned i = 0; i < PMA_COUNTERS; i++) {
		if (!a->counters[i] || !k.value[i])
			continue;
		if (!any)
			console_print(c, "#\t[%u] %s", at->port, a->name);
		console_print(c, " %s %" PRIu64, a->counters[i], k.value[i]);
		any = true;
	}
	if (any)
		console_print(c, "\n");
}

void console_counters(struct console *c, uint32_t node, uint8_t port)
{
	const struct console_place at = {.node = node, .port = port, .one = true};

	for (unsigned i = 0; i < SHOWN; i++)
		print_attribute(c, &at, &attributes[i]);
}

/* ---- PerformanceSet ---- */

struct wanted {
	const struct attribute *attribute;
	unsigned counter;
	uint64_t value;
};

static bool is_named(struct slice s, const char *name)
{
	return s.len == strlen(name) && !strncasecmp(s.p, name, s.len);
}

/* What stands before the byte, without blanks at its end. */
static bool take_until(struct lex *l, char end, struct slice *out)
{
	const char *to = memchr(l->p, end, l->end - l->p);

	if (!to)
		return false;
	*out = (struct slice){l->p, to - l->p};
	l->p = to + 1;
	while (out->len && (out->p[out->len - 1] == ' ' || out->p[out->len - 1] == '\t'))
		out->len--;
	return true;
}

static int find_counter(
	struct console *c, struct slice attribute, struct slice counter, struct wanted *w)
{
	char shown[CONSOLE_SHOWN];

	for (w->attribute = attributes; w->attribute < attributes + ATTRIBUTES; w->attribute++)
		if (is_named(attribute, w->attribute->name))
			break;
	if (w->attribute == attributes + ATTRIBUTES)
		return console_fail(c, -ENOENT, "there is no attribute '%s' with counters",
			console_shown(shown, attribute));
	for (w->counter = 0; w->counter < PMA_COUNTERS; w->counter++)
		if (w->attribute->counters[w->counter] &&
			is_named(counter, w->attribute->counters[w->counter]))
			return 0;
	return console_fail(c, -ENOENT, "%s has no counter '%s'", w->attribute->name,
		console_shown(shown, counter));
}

static int parse(struct console *c, struct slice text, struct wanted *w)
{
	struct lex l = {text.p, text.p + text.len};
	struct slice attribute, counter;
	int rc;

	if (!take_until(&l, '.', &attribute) || !take_until(&l, '=', &counter))
		return console_misused(c, CONSOLE_COUNTER);
	rc = find_counter(c, attribute, counter, w);
	if (rc)
		return rc;
	lex_blank(&l);
	if (!lex_number(&l, UINT64_MAX, &w->value) || lex_blank(&l))
		return console_fail(c, -EINVAL, "a counter's value is a number of 64 bits");
	return 0;
}

/* The greatest value that a counter's field holds. */
static uint64_t most(const struct wanted *w)
{
	const size_t off = offsetof(struct pma_counters, value) + w->counter * sizeof(uint64_t);
	const struct wire_format *f = w->attribute->format;

	for (size_t i = 0; i < f->n; i++)
		if (f->fields[i].off == off)
			return UINT64_MAX >> (64 - f->fields[i].bits);
	return 0;
}

int console_set_counter(struct console *c, const struct console_command *cmd)
{
	struct pma_counters k = {0};
	struct wanted w;
	int rc = parse(c, cmd->counter, &w);

	if (rc)
		return rc;
	if (w.value > most(&w))
		w.value = most(&w);
	k.value[w.counter] = w.value;
	k.select = w.counter < 16 ? 1u << w.counter : 0;
	k.select2 = w.counter < 16 ? 0 : 1u << (w.counter - 16);
	if (!ask(c, &cmd->at, w.attribute, MAD_SET, &k))
		return console_fail(c, -EINVAL, "\"%s\"[%u] does not take it",
			console_id(c, cmd->at.node), cmd->at.port);
	console_print(c, "%s[%u] %s.%s=%" PRIu64 "\n", console_id(c, cmd->at.node), cmd->at.port,
		w.attribute->name, w.attribute->counters[w.counter], w.value);
	return 0;
}
