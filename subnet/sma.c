// SPDX-License-Identifier: BSD-3-Clause
#include "subnet/sma.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "subnet/sma_part.h"
#include "subnet/sma_port.h"
#include "subnet/sma_switch.h"
#include "subnet/trap.h"

enum { CA_PKEYS = 64, SWITCH_PKEYS = 32, NODE_REVISION = 0 };

static uint16_t get_node_info(struct sma *c)
{
	const struct node *n = &c->s->nodes[c->node];
	const struct tables_node *t = &c->s->t.nodes[c->node];
	struct node_info i = {.base_version = MAD_BASE_VERSION,
		.class_version = SMP_CLASS_VERSION,
		.type = t->kind,
		.ports = t->n_ports,
		.system_guid = n->system_guid,
		.node_guid = n->guid,
		.port_guid = port_at(c->s, c->port)->guid,
		.partition_cap = t->kind == TABLES_SWITCH ? SWITCH_PKEYS : CA_PKEYS,
		.device = n->device,
		.revision = NODE_REVISION,
		.local_port = c->in,
		.vendor = n->vendor};

	wire_pack(&node_info_format, &i, c->data);
	return SMP_OK;
}

static uint16_t get_node_desc(struct sma *c)
{
	memcpy(c->data, c->s->nodes[c->node].desc, NODE_DESC);
	return SMP_OK;
}

static uint16_t set_node_desc(struct sma *c)
{
	uint8_t *desc = c->s->nodes[c->node].desc;

	if (memcmp(desc, c->data, NODE_DESC) == 0)
		return SMP_OK;
	memcpy(desc, c->data, NODE_DESC);
	trap_local_change(c->s, c->port, CHANGED_NODE_DESC);
	return SMP_OK;
}

static uint16_t get_notice(struct sma *c)
{
	trap_latest(c->s, c->port, c->data);
	return SMP_OK;
}

static const struct sma_attr attrs[] = {
	{SMP_NOTICE, get_notice, NULL},
	{SMP_NODE_DESC, get_node_desc, set_node_desc},
	{SMP_NODE_INFO, get_node_info, NULL},
	{SMP_SWITCH_INFO, sma_get_switch_info, sma_set_switch_info},
	{SMP_GUID_INFO, sma_get_guid_info, sma_set_guid_info},
	{SMP_PORT_INFO, sma_get_port_info, sma_set_port_info},
	{SMP_PKEY_TABLE, sma_get_pkeys, sma_set_pkeys},
	{SMP_SL2VL, sma_get_sl2vl, sma_set_sl2vl},
	{SMP_VL_ARB, sma_get_vl_arb, sma_set_vl_arb},
	{SMP_LFT, sma_get_lft, sma_set_lft},
	{SMP_MFT, sma_get_mft, sma_set_mft},
	{SMP_EXT_PORT_INFO, sma_get_ext_port_info, sma_set_ext_port_info},
};

static const struct sma_attr *find(uint16_t attr)
{
	for (size_t i = 0; i < sizeof attrs / sizeof attrs[0]; i++)
		if (attrs[i].attr == attr)
			return &attrs[i];
	return NULL;
}

static uint16_t get(struct sma *c, const struct sma_attr *a)
{
	memset(c->data, 0, SMP_DATA_SIZE);
	return a->get(c);
}

static uint16_t execute(struct sma *c)
{
	const struct sma_attr *a = find(c->h.attr);
	bool is_set = c->h.method == MAD_SET;
	uint16_t status;

	if (c->h.class_version != SMP_CLASS_VERSION)
		return SMP_BAD_VERSION;
	if (!a || (is_set && !a->set))
		return SMP_UNSUPPORTED;
	status = is_set ? a->set(c) : SMP_OK;
	if (is_set && !status)
		changed(c->s);
	return status ? status : get(c, a);
}

/* The request in mad becomes its response. */
static void answer(struct sma *c, uint8_t *mad)
{
	c->h.status = execute(c);
	c->h.method = MAD_GET_RESP;
	c->h.returning = c->h.mgmt_class == MAD_CLASS_SUBN_DR;
	wire_pack(&smp_hdr_format, &c->h, mad);
}

/* The lease of an M_Key that nobody has used for long ends its protection. */
static void end_lease(struct subnet *s, struct port *p)
{
	if (!p->mkey_until || s->ops.now(s->ops.arg) < p->mkey_until)
		return;
	p->mkey_until = 0;
	p->mkey_protect = 0;
}

static bool may_read(const struct port *p)
{
	enum { PROTECT_READS = 2 };

	return p->mkey_protect < PROTECT_READS;
}

/* Is the M_Key of a request good enough for it?  (14.2.4) */
static bool check_mkey(struct sma *c, const struct flight *f)
{
	struct port *p = port_at(c->s, c->port);

	end_lease(c->s, p);
	c->knows_key = !p->mkey || p->mkey == c->h.mkey;
	if (c->knows_key) {
		p->mkey_until = 0;
		return true;
	}
	if (c->h.method == MAD_GET && may_read(p))
		return true;
	p->mkey_violations += p->mkey_violations < UINT16_MAX;
	if (p->mkey_lease && !p->mkey_until)
		p->mkey_until = c->s->ops.now(c->s->ops.arg) + p->mkey_lease * NSEC_PER_SEC;
	trap_bad_mkey(c->s, c->port, f);
	return false;
}

static bool is_ours(const struct smp_hdr *h)
{
	if (h->method == MAD_TRAP_REPRESS)
		return h->attr == SMP_NOTICE;
	if (h->method != MAD_GET && h->method != MAD_SET)
		return false;
	if (h->attr >= SMP_VENDOR_FIRST)
		return h->attr == SMP_EXT_PORT_INFO; /* others are for who knows their vendor */
	return h->attr != SMP_SM_INFO;
}

static struct sma begin(struct subnet *s, uint32_t port, uint8_t *mad)
{
	uint32_t self = managed_by(s, port);
	struct sma c = {.s = s,
		.node = hot_at(s, port)->node,
		.port = self,
		.in = port_at(s, port)->num,
		.data = mad + SMP_DATA};

	wire_unpack(&smp_hdr_format, mad, &c.h);
	return c;
}

enum agent_said sma_handle(struct subnet *s, struct flight *f)
{
	struct sma c = begin(s, f->at, f->mad);

	if (!is_ours(&c.h))
		return AGENT_NOT_MINE;
	if (!check_mkey(&c, f))
		return AGENT_BAD_MKEY;
	if (c.h.method == MAD_TRAP_REPRESS) {
		trap_repress(s, c.port, c.h.tid, c.data);
		return AGENT_TAKEN;
	}
	answer(&c, f->mad);
	return AGENT_ANSWERED;
}

int subnet_local_smp(struct subnet *s, uint32_t node, uint8_t port, uint8_t mad[MAD_SIZE])
{
	uint32_t at = port_of(s, node, port);
	struct sma c;

	if (!at)
		return -EINVAL;
	c = begin(s, at, mad);
	if (c.h.method != MAD_GET && c.h.method != MAD_SET)
		return -EINVAL;
	c.knows_key = true;
	answer(&c, mad);
	return 0;
}
