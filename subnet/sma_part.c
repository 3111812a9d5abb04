// SPDX-License-Identifier: BSD-3-Clause
#include "subnet/sma_part.h"

#include <string.h>

/* A number of n bytes. */
static uint64_t load(const uint8_t *p, unsigned n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}

static void store(uint8_t *p, unsigned n, uint64_t v)
{
	for (; n--; v >>= 8)
		p[n] = v;
}

/* The port of a switch that the modifier means; an adapter has the one that the SMP came by. */
static uint32_t port_in(const struct sma *c, uint32_t number)
{
	if (!is_switch(c->s, c->node))
		return c->port;
	return number <= UINT8_MAX ? port_of(c->s, c->node, number) : 0;
}

/* Where a block of P_Keys begins, in *first; 0: there is no such block. */
static uint32_t pkey_block(const struct sma *c, unsigned *first)
{
	uint32_t port = port_in(c, c->h.attr_mod >> 16);
	unsigned cap = is_switch(c->s, c->node) && port == c->port ? SMP_PKEYS : TABLES_PKEYS;

	*first = (c->h.attr_mod & 0xffff) * SMP_PKEYS;
	return *first < cap ? port : 0;
}

uint16_t sma_get_pkeys(struct sma *c)
{
	unsigned first;
	uint32_t port = pkey_block(c, &first);

	if (!port)
		return SMP_INVALID;
	for (unsigned i = 0; i < SMP_PKEYS; i++)
		store(c->data + 2 * i, 2, tables_pkey(&c->s->t, port, first + i));
	return SMP_OK;
}

uint16_t sma_set_pkeys(struct sma *c)
{
	unsigned first;
	uint32_t port = pkey_block(c, &first);

	if (!port)
		return SMP_INVALID;
	for (unsigned i = 0; i < SMP_PKEYS; i++)
		tables_set_pkey(&c->s->t, port, first + i, load(c->data + 2 * i, 2));
	tables_changed(&c->s->t);
	if (!is_external(c->s, port))
		tell(c->s, port, SUBNET_PKEY_CHANGE);
	return SMP_OK;
}

uint16_t sma_get_guid_info(struct sma *c)
{
	const uint64_t *guids = c->s->guids[c->port];

	if (c->h.attr_mod)
		return SMP_INVALID;
	store(c->data, 8, port_at(c->s, c->port)->guid);
	for (unsigned i = 1; i < SMP_GUIDS; i++)
		store(c->data + 8 * i, 8, guids[i]);
	return SMP_OK;
}

/* The first GUID is the port's own and stays. */
uint16_t sma_set_guid_info(struct sma *c)
{
	uint64_t *guids = c->s->guids[c->port];
	bool changed = false;

	if (c->h.attr_mod)
		return SMP_INVALID;
	for (unsigned i = 1; i < SMP_GUIDS; i++) {
		uint64_t guid = load(c->data + 8 * i, 8);

		if (guid != guids[i]) {
			guids[i] = guid;
			changed = true;
		}
	}
	if (changed)
		tell(c->s, c->port, SUBNET_GID_CHANGE);
	return SMP_OK;
}

/* False: a switch has no such pair of ports. */
static bool sl2vl_ports(const struct sma *c, uint8_t *in, uint8_t *out)
{
	*in = c->h.attr_mod >> 8;
	*out = c->h.attr_mod;
	if (is_switch(c->s, c->node))
		return !(c->h.attr_mod >> 16) && port_of(c->s, c->node, *in) &&
		       port_of(c->s, c->node, *out);
	*in = 0;
	*out = port_at(c->s, c->port)->num;
	return true;
}

uint16_t sma_get_sl2vl(struct sma *c)
{
	uint8_t in, out;

	if (!sl2vl_ports(c, &in, &out))
		return SMP_INVALID;
	store(c->data, 8, tables_sl2vl(&c->s->t, c->node, in, out));
	return SMP_OK;
}

uint16_t sma_set_sl2vl(struct sma *c)
{
	uint8_t in, out;

	if (!sl2vl_ports(c, &in, &out))
		return SMP_INVALID;
	tables_set_sl2vl(&c->s->t, c->node, in, out, load(c->data, 8));
	tables_changed(&c->s->t);
	return SMP_OK;
}

/* Until it is set each data VL has the same weight. */
static void flip_default(uint8_t *data)
{
	enum { WEIGHT = 32 };

	for (unsigned vl = 0; vl < VLS; vl++) {
		data[2 * vl] ^= vl;
		data[2 * vl + 1] ^= WEIGHT;
	}
}

/* Blocks 1 and 2 are of low priority, 3 and 4 of high; of each VL_ARB_CAP says the first. */
static uint8_t *vl_arb_block(const struct sma *c)
{
	enum { LOW = 1, HIGH = 3 };
	uint32_t port = port_in(c, c->h.attr_mod & 0xffff), block = c->h.attr_mod >> 16;

	if (!port || (block != LOW && block != HIGH))
		return NULL;
	return c->s->vl_arb[port].block[block == HIGH];
}

uint16_t sma_get_vl_arb(struct sma *c)
{
	const uint8_t *block = vl_arb_block(c);

	if (!block)
		return SMP_INVALID;
	memcpy(c->data, block, SMP_DATA_SIZE);
	flip_default(c->data);
	return SMP_OK;
}

uint16_t sma_set_vl_arb(struct sma *c)
{
	uint8_t *block = vl_arb_block(c);

	if (!block)
		return SMP_INVALID;
	flip_default(c->data);
	if (memcmp(block, c->data, SMP_DATA_SIZE) != 0)
		memcpy(block, c->data, SMP_DATA_SIZE);
	return SMP_OK;
}
