// SPDX-License-Identifier: BSD-3-Clause
#include "sm/port.h"

#include <string.h>

#include "sm/attr.h"

enum { SUBNET_TIMEOUT = 18, PKEY_DEFAULT = 0xffff, PKEY_AT = 16 };

uint8_t port_number(const struct tables *t, uint32_t port)
{
	return port - t->nodes[t->ports[port].node].port0;
}

bool port_is_managed(const struct tables *t, uint32_t port)
{
	return !tables_is_switch(t, port) || !port_number(t, port);
}

/* At which port its agent is asked: all of a switch have one. */
static uint8_t agent(const struct tables *t, uint32_t port)
{
	return tables_is_switch(t, port) ? 0 : port_number(t, port);
}

uint64_t port_guid(struct subnet *s, const struct tables *t, uint32_t port)
{
	struct node_info i = {0};
	uint8_t data[SMP_DATA_SIZE];

	if (attr_get(s, t->ports[port].node, agent(t, port), SMP_NODE_INFO, 0, data))
		wire_unpack(&node_info_format, data, &i);
	return i.port_guid;
}

/* ---- PortInfo ---- */

static bool get_data(
	struct subnet *s, const struct tables *t, uint32_t port, uint8_t data[SMP_DATA_SIZE])
{
	return attr_get(
		s, t->ports[port].node, agent(t, port), SMP_PORT_INFO, port_number(t, port), data);
}

static struct port_info unpacked(const uint8_t data[SMP_DATA_SIZE])
{
	struct port_info i = {0};

	wire_unpack(&port_info_format, data, &i);
	return i;
}

/* With the states that are asked for; 0 leaves what is there. */
static void set_info(
	struct subnet *s, const struct tables *t, uint32_t port, struct port_info *i, uint8_t state)
{
	uint8_t data[SMP_DATA_SIZE] = {0};

	i->state = state;
	i->phys_state = PHYS_NOP;
	wire_pack(&port_info_format, i, data);
	attr_set(s, t->ports[port].node, agent(t, port), SMP_PORT_INFO, port_number(t, port), data);
}

static uint8_t lesser(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static void wish_link(struct subnet *s, const struct tables *t, uint32_t port, struct port_info *i)
{
	uint32_t peer = tables_load(&t->ports[port].peer);
	uint8_t data[SMP_DATA_SIZE];
	struct port_info other;

	i->part_in = i->part_out = 0;
	if (!peer || !get_data(s, t, peer, data))
		return;
	other = unpacked(data);
	i->neighbor_mtu = lesser(i->mtu_cap, other.mtu_cap);
	i->oper_vls = lesser(i->vl_cap, other.vl_cap);
}

static void wish_managed(struct port_info *i, uint16_t lid, uint8_t lmc, uint16_t sm_lid)
{
	i->lid = lid;
	i->lmc = lmc;
	i->sm_lid = sm_lid;
	i->sm_sl = 0;
	i->mkey = 0;
	i->mkey_protect = 0;
	i->mkey_lease = 0;
	i->subnet_timeout = SUBNET_TIMEOUT;
}

static unsigned configure_info(struct subnet *s, const struct tables *t, uint32_t port,
	uint16_t lid, uint8_t lmc, uint16_t sm_lid)
{
	uint8_t old[SMP_DATA_SIZE], new[SMP_DATA_SIZE];
	struct port_info i;

	if (!get_data(s, t, port, old))
		return 0;
	i = unpacked(old);
	wish_link(s, t, port, &i);
	if (port_is_managed(t, port))
		wish_managed(&i, lid, lmc, sm_lid);
	memcpy(new, old, sizeof new);
	wire_pack(&port_info_format, &i, new);
	if (i.state != PORT_INIT && !memcmp(old, new, sizeof new))
		return 0;
	set_info(s, t, port, &i, i.state == PORT_INIT ? PORT_ARMED : PORT_NOP);
	return 1;
}

/* ---- P_Keys, SL to VL ---- */

static bool has_default_pkeys(const struct tables *t, uint32_t port, unsigned first)
{
	for (unsigned i = first; i < first + SMP_PKEYS; i++)
		if (tables_pkey(t, port, i) != (i ? 0 : PKEY_DEFAULT))
			return false;
	return true;
}

static unsigned configure_pkeys(struct subnet *s, const struct tables *t, uint32_t port)
{
	unsigned n = 0;

	for (unsigned block = 0; block < TABLES_PKEYS / SMP_PKEYS; block++) {
		uint32_t mod =
			(tables_is_switch(t, port) ? port_number(t, port) << PKEY_AT : 0) | block;
		uint8_t data[SMP_DATA_SIZE] = {0};

		if (has_default_pkeys(t, port, block * SMP_PKEYS))
			continue;
		if (!block)
			data[0] = data[1] = 0xff;
		n += attr_set(s, t->ports[port].node, agent(t, port), SMP_PKEY_TABLE, mod, data);
	}
	return n;
}

/* SL n on VL n, as far as the port has VLs, a power of two. */
static uint64_t identity(const struct tables *t, uint32_t port)
{
	uint8_t vls = tables_load(&t->ports[port].vls);
	uint64_t all = 0;

	for (unsigned sl = 0; sl < SMP_SLS; sl++)
		all = all << 4 | (vls ? sl % vls : 0);
	return all;
}

static void pack_sl2vl(uint8_t *data, uint64_t vls)
{
	for (unsigned i = 8; i--; vls >>= 8)
		data[i] = vls;
}

/* What leaves by that port, whatever way it came in. */
static unsigned configure_sl2vl(struct subnet *s, const struct tables *t, uint32_t port)
{
	uint32_t node = t->ports[port].node;
	uint8_t out = port_number(t, port), data[SMP_DATA_SIZE];
	uint64_t wish = identity(t, port);
	unsigned n = 0;

	for (unsigned in = 0; in <= (tables_is_switch(t, port) ? t->nodes[node].n_ports : 0u);
		in++) {
		uint32_t mod = tables_is_switch(t, port) ? in << 8 | out : 0;

		if (tables_sl2vl(t, node, in, out) == wish)
			continue;
		memset(data, 0, sizeof data);
		pack_sl2vl(data, wish);
		n += attr_set(s, node, agent(t, port), SMP_SL2VL, mod, data);
	}
	return n;
}

unsigned port_configure(struct subnet *s, const struct tables *t, uint32_t port, uint16_t lid,
	uint8_t lmc, uint16_t sm_lid)
{
	unsigned n = configure_info(s, t, port, lid, lmc, sm_lid) + configure_pkeys(s, t, port);

	return n + configure_sl2vl(s, t, port);
}

unsigned port_activate(struct subnet *s, const struct tables *t, uint32_t port, bool reregister)
{
	bool armed = tables_load(&t->ports[port].state) == PORT_ARMED;
	uint8_t data[SMP_DATA_SIZE];
	struct port_info i;

	reregister &= port_is_managed(t, port);
	if ((!reregister && !armed) || !get_data(s, t, port, data))
		return 0;
	i = unpacked(data);
	i.client_reregister = reregister;
	set_info(s, t, port, &i, armed ? PORT_ACTIVE : PORT_NOP);
	return 1;
}
