// SPDX-License-Identifier: BSD-3-Clause
#include "subnet/pma.h"

#include <errno.h>
#include <string.h>

#include "wire/pma.h"

/* Where an attribute has its counters from. */
enum source { FROM_COUNTERS, FROM_DETAIL, FROM_XMIT_SL, FROM_RCV_SL };

enum { NONE = 0xff };

/* Which counter the select bits of PortCountersExtended mean; the second word's from 16 on. */
static const uint8_t ext_counters[PMA_COUNTERS] = {
	COUNT_XMIT_DATA,
	COUNT_RCV_DATA,
	COUNT_XMIT_PKTS,
	COUNT_RCV_PKTS,
	COUNT_UNICAST_XMIT,
	COUNT_UNICAST_RCV,
	COUNT_MULTICAST_XMIT,
	COUNT_MULTICAST_RCV,
	NONE,
	NONE,
	NONE,
	NONE,
	NONE,
	NONE,
	NONE,
	NONE,
	COUNT_SYMBOL_ERROR,
	COUNT_LINK_RECOVERY,
	COUNT_LINK_DOWNED,
	COUNT_RCV_ERRORS,
	COUNT_RCV_REMOTE_PHYSICAL,
	COUNT_RCV_SWITCH_RELAY,
	COUNT_XMIT_DISCARDS,
	COUNT_XMIT_CONSTRAINT,
	COUNT_RCV_CONSTRAINT,
	COUNT_LINK_INTEGRITY,
	COUNT_BUFFER_OVERRUN,
	COUNT_VL15_DROPPED,
	COUNT_XMIT_WAIT,
	COUNT_QP1_DROPPED,
	NONE,
	NONE,
};

static const struct pma_kind {
	uint16_t attr;
	enum source source;
	uint8_t n;     /* counters, from the first select bit on */
	uint8_t first; /* of the source */
	const struct wire_format *format;
	const uint8_t *map; /* NULL: they follow each other */
} kinds[] = {
	{PMA_PORT_COUNTERS, FROM_COUNTERS, COUNT_CLASSIC, 0, &pma_counters_format, NULL},
	{PMA_RCV_ERROR_DETAILS, FROM_DETAIL, DETAIL_XMIT, 0, &pma_rcv_errors_format, NULL},
	{PMA_XMIT_DISCARD_DETAILS, FROM_DETAIL, DETAIL_ALL - DETAIL_XMIT, DETAIL_XMIT,
		&pma_xmit_discards_format, NULL},
	{PMA_PORT_COUNTERS_EXT, FROM_COUNTERS, PMA_COUNTERS, 0, &pma_counters_ext_format,
		ext_counters},
	{PMA_XMIT_DATA_SL, FROM_XMIT_SL, SMP_SLS, 0, &pma_data_sl_format, NULL},
	{PMA_RCV_DATA_SL, FROM_RCV_SL, SMP_SLS, 0, &pma_data_sl_format, NULL},
};

static const struct pma_kind *kind_of(uint16_t attr)
{
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (kinds[i].attr == attr)
			return &kinds[i];
	return NULL;
}

/* Which of its source's counters select bit i means; NONE. */
static unsigned which(const struct pma_kind *k, unsigned i)
{
	return k->map ? k->map[i] : k->first + i;
}

static uint64_t read_one(const struct subnet *s, uint32_t port, enum source from, unsigned i)
{
	switch (from) {
	case FROM_COUNTERS:
		return s->counters[port].all[i];
	case FROM_DETAIL:
		return s->counters[port].detail[i];
	default:
		return s->sl_data[port].words[from == FROM_RCV_SL][i];
	}
}

static void write_one(struct subnet *s, uint32_t port, enum source to, unsigned i, uint64_t value)
{
	switch (to) {
	case FROM_COUNTERS:
		s->counters[port].all[i] = value;
		break;
	case FROM_DETAIL:
		s->counters[port].detail[i] = value;
		break;
	default:
		s->sl_data[port].words[to == FROM_RCV_SL][i] = value;
	}
}

/* The ports that PortSelect means. */
struct range {
	uint32_t first, n;
};

static bool ports_of(
	const struct subnet *s, const struct flight *f, uint8_t select, struct range *r)
{
	const struct tables_node *n = &s->t.nodes[f->node];
	bool sw = n->kind == TABLES_SWITCH;

	*r = (struct range){port_of(s, f->node, select), 1};
	if (select == PMA_ALL_PORTS)
		*r = (struct range){n->port0 + !sw, n->n_ports + sw};
	return r->first;
}

/* Counters stop at what their field can hold. */
static void saturate(const struct wire_format *f, struct pma_counters *c)
{
	const size_t values = offsetof(struct pma_counters, value);

	for (size_t i = 0; i < f->n; i++) {
		const struct wire_field *x = &f->fields[i];
		uint64_t most = UINT64_MAX >> (64 - x->bits), *value;

		if (x->off < values)
			continue;
		value = &c->value[(x->off - values) / sizeof *value];
		if (*value > most)
			*value = most;
	}
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static void read_all(
	const struct subnet *s, struct range r, const struct pma_kind *k, struct pma_counters *c)
{
	memset(c->value, 0, sizeof c->value);
	for (uint32_t p = r.first; p < r.first + r.n; p++)
		for (unsigned i = 0; i < k->n; i++)
			if (which(k, i) != NONE)
				c->value[i] =
					add(c->value[i], read_one(s, p, k->source, which(k, i)));
	saturate(k->format, c);
}

static void write_selected(
	struct subnet *s, struct range r, const struct pma_kind *k, const struct pma_counters *c)
{
	uint64_t selected = c->select | (uint64_t)c->select2 << 16;

	for (uint32_t p = r.first; p < r.first + r.n; p++)
		for (unsigned i = 0; i < k->n; i++)
			if (selected >> i & 1 && which(k, i) != NONE)
				write_one(s, p, k->source, which(k, i), c->value[i]);
}

static uint16_t counters(struct subnet *s, struct flight *f, const struct pma_kind *k, bool set)
{
	uint8_t *data = f->mad + PMA_DATA;
	struct pma_counters c = {0};
	struct range r;

	wire_unpack(k->format, data, &c);
	if (!ports_of(s, f, c.port, &r))
		return SMP_INVALID;
	if (set)
		write_selected(s, r, k, &c);
	read_all(s, r, k, &c);
	memset(data, 0, PMA_DATA_SIZE);
	wire_pack(k->format, &c, data);
	return SMP_OK;
}

static uint16_t class_port_info(struct flight *f, bool set)
{
	const struct class_port_info i = {.base_version = MAD_BASE_VERSION,
		.class_version = PMA_CLASS_VERSION,
		.cap_mask = PMA_CAP_ALL_PORTS | PMA_CAP_EXT_WIDTH | PMA_CAP_XMIT_WAIT,
		.cap_mask2 = PMA_CAP2_MORE_EXT,
		.resp_time = RESP_TIME};

	if (set)
		return SMP_UNSUPPORTED;
	memset(f->mad + PMA_DATA, 0, PMA_DATA_SIZE);
	wire_pack(&class_port_info_format, &i, f->mad + PMA_DATA);
	return SMP_OK;
}

static uint16_t execute(struct subnet *s, struct flight *f, const struct mad_hdr *h)
{
	const struct pma_kind *k = kind_of(h->attr);
	bool set = h->method == MAD_SET;

	if (h->class_version != PMA_CLASS_VERSION)
		return SMP_BAD_VERSION;
	if (h->attr == MAD_ATTR_CLASS_PORT_INFO)
		return class_port_info(f, set);
	return k ? counters(s, f, k, set) : SMP_UNSUPPORTED;
}

enum agent_said pma_handle(struct subnet *s, struct flight *f)
{
	struct mad_hdr h;

	mad_hdr_unpack(f->mad, &h);
	if (h.mgmt_class != MAD_CLASS_PERF || (h.method != MAD_GET && h.method != MAD_SET))
		return AGENT_NOT_MINE;
	h.status = execute(s, f, &h);
	h.method = MAD_GET_RESP;
	mad_hdr_pack(&h, f->mad);
	return AGENT_ANSWERED;
}

int subnet_local_pma(struct subnet *s, uint32_t node, uint8_t port, uint8_t mad[MAD_SIZE])
{
	uint32_t at = port_of(s, node, port);
	struct flight f = {.at = at, .node = node, .mad = mad};

	return at && pma_handle(s, &f) == AGENT_ANSWERED ? 0 : -EINVAL;
}
