// SPDX-License-Identifier: BSD-3-Clause
#include "subnet/sma_switch.h"

enum {
	MFT_BLOCK = 0x1ff,
	MFT_POSITION = 28, /* bits of the modifier below it */
	MFT_RESERVED = 0x0ffffe00,
	ENFORCEMENT_CAP = TABLES_PKEYS,
};

static struct tables_node *hot_node(const struct sma *c)
{
	return &c->s->t.nodes[c->node];
}

uint16_t sma_get_switch_info(struct sma *c)
{
	struct switch_info i = c->s->nodes[c->node].sw;

	if (!is_switch(c->s, c->node))
		return SMP_UNSUPPORTED;
	i.lft_cap = TABLES_LIDS;
	i.mft_cap = TABLES_MLIDS;
	i.lft_top = tables_load(&hot_node(c)->lft_top);
	i.mft_top = tables_load(&hot_node(c)->mft_top);
	i.enforce_cap = ENFORCEMENT_CAP;
	i.enforce_in = i.enforce_out = 1;
	wire_pack(&switch_info_format, &i, c->data);
	return SMP_OK;
}

static void set_tops(struct sma *c, const struct switch_info *i)
{
	struct tables_node *n = hot_node(c);

	if (i->lft_top == tables_load(&n->lft_top) && i->mft_top == tables_load(&n->mft_top))
		return;
	tables_store(&n->lft_top, i->lft_top);
	tables_store(&n->mft_top, i->mft_top);
	tables_changed(&c->s->t);
}

static bool mft_top_allowed(uint16_t top)
{
	/* 0xbfff: none. */
	return !top || (top >= LID_MULTICAST - 1 && top < LID_MULTICAST + TABLES_MLIDS);
}

uint16_t sma_set_switch_info(struct sma *c)
{
	struct switch_info *sw = &c->s->nodes[c->node].sw, i;

	if (!is_switch(c->s, c->node))
		return SMP_UNSUPPORTED;
	wire_unpack(&switch_info_format, c->data, &i);
	if (i.lft_top >= TABLES_LIDS || !mft_top_allowed(i.mft_top))
		return SMP_INVALID;
	set_tops(c, &i);
	sw->default_port = i.default_port;
	sw->default_mc_primary = i.default_mc_primary;
	sw->default_mc_not_primary = i.default_mc_not_primary;
	sw->life_time = i.life_time;
	/* Writing 1 clears it. */
	sw->port_state_change &= !i.port_state_change;
	return SMP_OK;
}

static _Atomic uint8_t *lft_block(const struct sma *c)
{
	if (!is_switch(c->s, c->node) || c->h.attr_mod >= TABLES_LIDS / SMP_LIDS)
		return NULL;
	return &c->s->t.lft[hot_node(c)->lft + c->h.attr_mod * SMP_LIDS];
}

/* Why there is no such block. */
static uint16_t no_block(const struct sma *c)
{
	return is_switch(c->s, c->node) ? SMP_INVALID : SMP_UNSUPPORTED;
}

uint16_t sma_get_lft(struct sma *c)
{
	_Atomic uint8_t *block = lft_block(c);

	if (!block)
		return no_block(c);
	for (int i = 0; i < SMP_LIDS; i++)
		c->data[i] = ~tables_load(&block[i]);
	return SMP_OK;
}

uint16_t sma_set_lft(struct sma *c)
{
	_Atomic uint8_t *block = lft_block(c);

	if (!block)
		return no_block(c);
	for (int i = 0; i < SMP_LIDS; i++)
		tables_store(&block[i], (uint8_t)~c->data[i]);
	tables_changed(&c->s->t);
	return SMP_OK;
}

/* Entry 0 of the block; the next ones are tables_positions() apart. */
static _Atomic uint16_t *mft_block(const struct sma *c)
{
	unsigned block = c->h.attr_mod & MFT_BLOCK, position = c->h.attr_mod >> MFT_POSITION;
	unsigned positions = tables_positions(hot_node(c)->n_ports);

	if (!is_switch(c->s, c->node) || c->h.attr_mod & MFT_RESERVED ||
		block >= TABLES_MLIDS / SMP_MLIDS || position >= positions)
		return NULL;
	return &c->s->t.mft[hot_node(c)->mft + block * SMP_MLIDS * positions + position];
}

uint16_t sma_get_mft(struct sma *c)
{
	_Atomic uint16_t *block = mft_block(c);
	unsigned positions = tables_positions(hot_node(c)->n_ports);

	if (!block)
		return no_block(c);
	for (unsigned i = 0; i < SMP_MLIDS; i++) {
		uint16_t ports = tables_load(&block[i * positions]);

		c->data[2 * i] = ports >> 8;
		c->data[2 * i + 1] = ports;
	}
	return SMP_OK;
}

uint16_t sma_set_mft(struct sma *c)
{
	_Atomic uint16_t *block = mft_block(c);
	unsigned positions = tables_positions(hot_node(c)->n_ports);

	if (!block)
		return no_block(c);
	for (unsigned i = 0; i < SMP_MLIDS; i++)
		tables_store(&block[i * positions],
			(uint16_t)(c->data[2 * i] << 8 | c->data[2 * i + 1]));
	tables_changed(&c->s->t);
	return SMP_OK;
}
