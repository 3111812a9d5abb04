// SPDX-License-Identifier: BSD-3-Clause
/* The agent of subnet management: attributes, port states, links, M_Keys. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "subnet/state.h"
#include "subnet_world.h"

static void fresh_ports(void **state)
{
	struct world *w = *state;
	struct port_info i;

	assert_int_equal(world_get_port(w, H0, 1, &i), 0);
	assert_int_equal(i.state, PORT_INIT);
	assert_int_equal(i.phys_state, PHYS_LINK_UP);
	assert_int_equal(i.width_active, 2);
	assert_int_equal(i.speed_active, 4);
	assert_int_equal(i.ext_speed_active, 2);
	assert_int_equal(i.neighbor_mtu, MTU_4096);
	assert_int_equal(i.subnet_timeout, 18);
	assert_true(i.cap_mask & CAP_EXT_SPEEDS);
	assert_int_equal(i.lid, 0);
	assert_int_equal(world_get_port(w, S0, 3, &i), 0);
	assert_int_equal(i.state, PORT_DOWN);
	assert_int_equal(i.phys_state, PHYS_POLLING);
	assert_int_equal(i.cap_mask, 0);
	assert_int_equal(world_get_port(w, S0, 0, &i), 0);
	assert_int_equal(i.state, PORT_ACTIVE);
	assert_int_equal(world_get_port(w, S1, 0, &i), 0);
	assert_int_equal(i.state, PORT_INIT); /* an enhanced one */
	assert_int_equal(world_get_port(w, S1, 5, &i), SMP_INVALID);
	assert_int_equal(world_local(w, H1, 1, MAD_GET, SMP_PORT_INFO, 2, NULL), SMP_INVALID);
}

static void node_info(void **state)
{
	uint8_t data[SMP_DATA_SIZE] = {0};
	struct world *w = *state;
	struct node_info i;

	assert_int_equal(world_local(w, H0, 2, MAD_GET, SMP_NODE_INFO, 0, data), 0);
	wire_unpack(&node_info_format, data, &i);
	assert_int_equal(i.type, TOPO_CA);
	assert_int_equal(i.ports, 2);
	assert_int_equal(i.node_guid, 0x100000);
	assert_int_equal(i.port_guid, 0x100002);
	assert_int_equal(i.local_port, 2);
	assert_int_equal(i.vendor, 0xabcdef);
	assert_int_equal(i.device, 0x1234);
	assert_int_equal(i.partition_cap, 64);
	assert_int_equal(world_local(w, S1, 0, MAD_GET, SMP_NODE_INFO, 0, data), 0);
	wire_unpack(&node_info_format, data, &i);
	assert_int_equal(i.type, TOPO_SWITCH);
	assert_int_equal(i.port_guid, 0x200001);
	assert_int_equal(i.partition_cap, 32);
	assert_int_equal(world_local(w, S1, 0, MAD_SET, SMP_NODE_INFO, 0, data), SMP_UNSUPPORTED);
}

/* One change of a PortInfo that was read before, at an adapter's port, and what comes of it. */
static const struct change {
	const char *what;
	uint8_t from; /* state */
	size_t off, size;
	uint64_t value;
	int status;
	uint64_t after;
} changes[] = {
#define C(member) offsetof(struct port_info, member), sizeof(((struct port_info *)0)->member)
	{"nothing", PORT_INIT, C(state), PORT_NOP, 0, PORT_INIT},
	{"init by hand", PORT_INIT, C(state), PORT_INIT, SMP_INVALID, PORT_INIT},
	{"armed", PORT_INIT, C(state), PORT_ARMED, 0, PORT_ARMED},
	{"active too early", PORT_INIT, C(state), PORT_ACTIVE, SMP_INVALID, PORT_INIT},
	{"active", PORT_ARMED, C(state), PORT_ACTIVE, 0, PORT_ACTIVE},
	{"active again", PORT_ACTIVE, C(state), PORT_ACTIVE, 0, PORT_ACTIVE},
	{"back to armed", PORT_ACTIVE, C(state), PORT_ARMED, SMP_INVALID, PORT_ACTIVE},
	{"down, and up again", PORT_ACTIVE, C(state), PORT_DOWN, 0, PORT_INIT},
	{"no such state", PORT_INIT, C(state), 5, SMP_INVALID, PORT_INIT},
	{"disabled", PORT_ACTIVE, C(phys_state), PHYS_DISABLED, 0, PHYS_DISABLED},
	{"polling", PORT_ACTIVE, C(phys_state), PHYS_POLLING, 0, PHYS_LINK_UP},
	{"no such phys. state", PORT_ACTIVE, C(phys_state), PHYS_TRAINING, SMP_INVALID,
		PHYS_LINK_UP},
	{"LID", PORT_INIT, C(lid), 9, 0, 9},
	{"LID 0xbfff", PORT_INIT, C(lid), 0xbfff, 0, 0xbfff},
	{"LID of a group", PORT_INIT, C(lid), 0xc000, SMP_INVALID, 0},
	{"SM's LID", PORT_INIT, C(sm_lid), 9, 0, 9},
	{"SM's LID of a group", PORT_INIT, C(sm_lid), 0xc000, SMP_INVALID, 0},
	{"LMC without a LID", PORT_INIT, C(lmc), 1, SMP_INVALID, 0},
	{"MTU", PORT_INIT, C(neighbor_mtu), 1, 0, 1},
	{"MTU 0", PORT_INIT, C(neighbor_mtu), 0, SMP_INVALID, MTU_4096},
	{"MTU 6", PORT_INIT, C(neighbor_mtu), 6, SMP_INVALID, MTU_4096},
	{"VLs", PORT_INIT, C(oper_vls), 2, 0, 2},
	{"no VLs", PORT_INIT, C(oper_vls), 0, 0, 4},
	{"too many VLs", PORT_INIT, C(oper_vls), 5, SMP_INVALID, 4},
	{"width", PORT_INIT, C(width_enabled), 1, 0, 1},
	{"all widths", PORT_INIT, C(width_enabled), 255, 0, 3},
	{"no width", PORT_INIT, C(width_enabled), 0, 0, 3},
	{"width not there", PORT_INIT, C(width_enabled), 8, SMP_INVALID, 3},
	{"speed", PORT_INIT, C(speed_enabled), 2, 0, 2},
	{"all speeds", PORT_INIT, C(speed_enabled), 15, 0, 7},
	{"speed not there", PORT_INIT, C(speed_enabled), 8, SMP_INVALID, 7},
	{"extended speed", PORT_INIT, C(ext_speed_enabled), 1, 0, 1},
	{"no extended speed", PORT_INIT, C(ext_speed_enabled), 30, 0, 0},
	{"all extended speeds", PORT_INIT, C(ext_speed_enabled), 31, 0, 3},
	{"extended speed not there", PORT_INIT, C(ext_speed_enabled), 4, SMP_INVALID, 3},
	{"M_Key", PORT_INIT, C(mkey), 0x1234567890, 0, 0x1234567890},
	{"default", PORT_INIT, C(down_default), PHYS_SLEEP, 0, PHYS_SLEEP},
	{"no such default", PORT_INIT, C(down_default), 3, SMP_INVALID, PHYS_POLLING},
	{"timeout", PORT_INIT, C(subnet_timeout), 7, 0, 7},
	{"capabilities are read only", PORT_INIT, C(guid_cap), 99, 0, PORT_GUIDS},
#undef C
};

static uint64_t member(const struct port_info *i, const struct change *c)
{
	uint64_t v = 0;

	memcpy(&v, (const char *)i + c->off, c->size);
	return v;
}

static void port_info_rules(void **state)
{
	struct world *w = *state;

	for (size_t n = 0; n < sizeof changes / sizeof changes[0]; n++) {
		const struct change *c = &changes[n];
		struct port_info i;
		int status;

		world_end(w);
		world_begin(w);
		for (uint8_t s = PORT_ARMED; s <= c->from; s++) {
			assert_int_equal(world_get_port(w, H0, 1, &i), 0);
			i.phys_state = 0;
			i.state = s;
			assert_int_equal(world_set_port(w, H0, 1, &i), 0);
		}
		assert_int_equal(world_get_port(w, H0, 1, &i), 0);
		i.state = i.phys_state = 0;
		memcpy((char *)&i + c->off, &c->value, c->size);
		status = world_set_port(w, H0, 1, &i);
		assert_int_equal(world_get_port(w, H0, 1, &i), 0);
		if (status != c->status || member(&i, c) != c->after)
			fail_msg("%s: status %#x, then %#llx", c->what, status,
				(unsigned long long)member(&i, c));
	}
}

static void invalid_changes_nothing(void **state)
{
	struct world *w = *state;
	struct port_info i;

	assert_int_equal(world_get_port(w, H0, 1, &i), 0);
	i.lid = 17;
	i.state = PORT_ACTIVE;
	assert_int_equal(world_set_port(w, H0, 1, &i), SMP_INVALID);
	assert_int_equal(world_get_port(w, H0, 1, &i), 0);
	assert_int_equal(i.lid, 0);
}

static void events_are_told(void **state)
{
	struct world *w = *state;
	struct port_info i;

	world_up(w);
	assert_int_equal(world_get_port(w, H1, 1, &i), 0);
	i.state = i.phys_state = 0;
	i.lid = 16;
	i.lmc = 3;
	i.sm_lid = 99;
	i.client_reregister = 1;
	assert_int_equal(world_set_port(w, H1, 1, &i), 0);
	assert_int_equal(i.client_reregister, 1);
	assert_int_equal(
		w->events[H1][1], SUBNET_LID_CHANGE | SUBNET_SM_CHANGE | SUBNET_CLIENT_REREGISTER);
	assert_int_equal(world_get_port(w, H1, 1, &i), 0);
	assert_int_equal(i.client_reregister, 0);
	w->events[H1][1] = 0;
	assert_int_equal(subnet_unlink(w->s, S1, 1), 0);
	assert_int_equal(w->events[H1][1], SUBNET_PORT_ERR);
}

static bool state_changed(struct world *w, uint32_t node, bool clear)
{
	uint8_t data[SMP_DATA_SIZE] = {0};
	struct switch_info i;

	assert_int_equal(world_local(w, node, 0, MAD_GET, SMP_SWITCH_INFO, 0, data), 0);
	wire_unpack(&switch_info_format, data, &i);
	if (clear)
		assert_int_equal(world_local(w, node, 0, MAD_SET, SMP_SWITCH_INFO, 0, data), 0);
	return i.port_state_change;
}

static void switch_info(void **state)
{
	static const struct {
		uint16_t lft_top, mft_top;
		int status;
	} cases[] = {{0xbfff, 0, 0}, {0xc000, 0, SMP_INVALID}, {1, 0xbfff, 0}, {1, 0xc3ff, 0},
		{1, 0xc400, SMP_INVALID}, {1, 1, SMP_INVALID}};
	struct world *w = *state;
	uint8_t data[SMP_DATA_SIZE];

	assert_int_equal(world_local(w, H0, 1, MAD_GET, SMP_SWITCH_INFO, 0, NULL), SMP_UNSUPPORTED);
	for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
		struct switch_info i = {
			.lft_top = cases[n].lft_top, .mft_top = cases[n].mft_top, .life_time = 18};

		memset(data, 0, sizeof data);
		wire_pack(&switch_info_format, &i, data);
		assert_int_equal(
			world_local(w, S1, 0, MAD_SET, SMP_SWITCH_INFO, 0, data), cases[n].status);
		if (cases[n].status)
			continue;
		wire_unpack(&switch_info_format, data, &i);
		assert_int_equal(i.lft_top, cases[n].lft_top);
		assert_int_equal(i.life_time, 18);
		assert_int_equal(i.lft_cap, 0xc000);
		assert_int_equal(i.enhanced_port0, 1);
	}
	assert_false(state_changed(w, S1, false));
	assert_int_equal(subnet_unlink(w->s, H1, 1), 0);
	assert_true(state_changed(w, S1, false));
	assert_true(state_changed(w, S1, true)); /* writing 1 clears it */
	assert_false(state_changed(w, S1, false));
	assert_false(state_changed(w, S0, false));
}

/* A block of a table at a modifier: what may be written comes back, and only there. */
static const struct table {
	const char *what;
	uint32_t node;
	uint8_t port;
	uint16_t attr;
	uint32_t mod;
	int status;
	unsigned bytes;
} tables[] = {
	{"LFT", S0, 0, SMP_LFT, 0, 0, 64},
	{"last of LFT", S0, 0, SMP_LFT, 767, 0, 64},
	{"beyond LFT", S0, 0, SMP_LFT, 768, SMP_INVALID, 0},
	{"LFT of an adapter", H0, 1, SMP_LFT, 0, SMP_UNSUPPORTED, 0},
	{"MFT", S0, 0, SMP_MFT, 0, 0, 64},
	{"last of MFT", S0, 0, SMP_MFT, 31, 0, 64},
	{"beyond MFT", S0, 0, SMP_MFT, 32, SMP_INVALID, 0},
	{"MFT of ports 16 on", S0, 0, SMP_MFT, 1u << 28, SMP_INVALID, 0},
	{"P_Keys", H0, 1, SMP_PKEY_TABLE, 0, 0, 64},
	{"P_Keys 32 on", H0, 1, SMP_PKEY_TABLE, 1, 0, 64},
	{"P_Keys 64 on", H0, 1, SMP_PKEY_TABLE, 2, SMP_INVALID, 0},
	{"P_Keys of a port", S0, 0, SMP_PKEY_TABLE, 2 << 16 | 1, 0, 64},
	{"P_Keys of no port", S0, 0, SMP_PKEY_TABLE, 5 << 16, SMP_INVALID, 0},
	{"P_Keys of port 0", S0, 0, SMP_PKEY_TABLE, 0, 0, 64},
	{"P_Keys of port 0, 32 on", S0, 0, SMP_PKEY_TABLE, 1, SMP_INVALID, 0},
	{"P_Keys of port 256", S0, 0, SMP_PKEY_TABLE, 256 << 16, SMP_INVALID, 0},
	{"SL to VL", S0, 0, SMP_SL2VL, 1 << 8 | 4, 0, 8},
	{"SL to VL from port 0", S0, 0, SMP_SL2VL, 4, 0, 8},
	{"SL to VL of no port", S0, 0, SMP_SL2VL, 5, SMP_INVALID, 0},
	{"SL to VL of all", S0, 0, SMP_SL2VL, 1 << 16, SMP_INVALID, 0},
	{"SL to VL of an adapter", H0, 2, SMP_SL2VL, 0, 0, 8},
	{"low priority", S0, 0, SMP_VL_ARB, 1 << 16 | 4, 0, 64},
	{"high priority", H1, 1, SMP_VL_ARB, 3 << 16, 0, 64},
	{"second block", H1, 1, SMP_VL_ARB, 2 << 16, SMP_INVALID, 0},
	{"arbitration of no port", S0, 0, SMP_VL_ARB, 1 << 16 | 5, SMP_INVALID, 0},
	{"GUIDs 8 on", H1, 1, SMP_GUID_INFO, 1, SMP_INVALID, 0},
};

static void tables_keep(void **state)
{
	struct world *w = *state;

	for (size_t n = 0; n < sizeof tables / sizeof tables[0]; n++) {
		const struct table *t = &tables[n];
		uint8_t data[SMP_DATA_SIZE], got[SMP_DATA_SIZE] = {0};
		uint64_t epoch = tables_load(&subnet_tables(w->s)->head->epoch);
		int status;

		for (int i = 0; i < SMP_DATA_SIZE; i++)
			data[i] = 1 + i + n;
		memcpy(got, data, sizeof got);
		status = world_local(w, t->node, t->port, MAD_SET, t->attr, t->mod, got);
		if (status != t->status)
			fail_msg("%s: status %#x", t->what, status);
		memset(got, 0, sizeof got);
		status = world_local(w, t->node, t->port, MAD_GET, t->attr, t->mod, got);
		if (status != t->status || memcmp(got, data, t->bytes) != 0)
			fail_msg("%s: status %#x, or what was read", t->what, status);
		if (!status && t->attr != SMP_VL_ARB)
			assert_true(tables_load(&subnet_tables(w->s)->head->epoch) > epoch);
	}
}

static void defaults(void **state)
{
	uint8_t data[SMP_DATA_SIZE] = {0};
	struct world *w = *state;

	assert_int_equal(world_local(w, S0, 0, MAD_GET, SMP_LFT, 0, data), 0);
	assert_int_equal(data[0], 0xff);
	assert_int_equal(world_local(w, S0, 0, MAD_GET, SMP_PKEY_TABLE, 1 << 16, data), 0);
	assert_memory_equal(data, "\xff\xff\x00\x00", 4);
	assert_int_equal(world_local(w, H0, 1, MAD_GET, SMP_SL2VL, 0, data), 0);
	assert_memory_equal(data, "\x01\x23\x45\x67\x01\x23\x45\x67", 8);
	assert_int_equal(world_local(w, H0, 1, MAD_GET, SMP_VL_ARB, 1 << 16, data), 0);
	assert_memory_equal(data, "\x00\x20\x01\x20\x02\x20", 6);
	assert_int_equal(data[16] | data[17], 0);
	/* One entry of its own leaves the others. */
	assert_int_equal(world_local(w, S0, 0, MAD_SET, SMP_SL2VL, 1 << 8 | 2, data), 0);
	assert_int_equal(world_local(w, S0, 0, MAD_GET, SMP_SL2VL, 2 << 8 | 1, data), 0);
	assert_memory_equal(data, "\x01\x23\x45\x67\x01\x23\x45\x67", 8);
}

static void guids(void **state)
{
	uint8_t data[SMP_DATA_SIZE];
	struct world *w = *state;

	memset(data, 7, sizeof data);
	assert_int_equal(world_local(w, H0, 2, MAD_SET, SMP_GUID_INFO, 0, data), 0);
	assert_memory_equal(data, "\x00\x00\x00\x00\x00\x10\x00\x02\x07\x07", 10);
	assert_int_equal(w->events[H0][2], SUBNET_GID_CHANGE);
	assert_int_equal(world_local(w, H0, 1, MAD_GET, SMP_GUID_INFO, 0, data), 0);
	assert_memory_equal(data, "\x00\x00\x00\x00\x00\x10\x00\x01\x00\x00", 10);
}

static void links(void **state)
{
	struct world *w = *state;
	struct port_info i;

	assert_int_equal(subnet_unlink(w->s, S0, 5), -EINVAL);
	assert_int_equal(subnet_unlink(w->s, S0, 0), -EINVAL);
	assert_int_equal(subnet_unlink(w->s, S0, 3), -ENOTCONN);
	assert_int_equal(subnet_relink(w->s, S0, 3), -ENOTCONN);
	assert_int_equal(subnet_relink(w->s, S0, 1), -EBUSY);
	assert_int_equal(subnet_link(w->s, S0, 3, S0, 3), -EINVAL);
	assert_int_equal(subnet_link(w->s, S0, 1, S1, 4), -EBUSY);
	assert_int_equal(subnet_unlink(w->s, H1, 1), 0);
	assert_int_equal(world_get_port(w, S1, 1, &i), 0);
	assert_int_equal(i.state, PORT_DOWN);
	assert_int_equal(i.phys_state, PHYS_POLLING);
	assert_int_equal(subnet_relink(w->s, S1, 1), 0);
	assert_int_equal(world_get_port(w, H1, 1, &i), 0);
	assert_int_equal(i.state, PORT_INIT);
	assert_int_equal(subnet_unlink(w->s, H1, 1), 0);
	assert_int_equal(subnet_link(w->s, H1, 1, S0, 3), 0);
	assert_int_equal(world_get_port(w, S0, 3, &i), 0);
	assert_int_equal(i.state, PORT_INIT);
	assert_int_equal(subnet_relink(w->s, S1, 1), -EBUSY); /* its other end is elsewhere */
	assert_int_equal(subnet_unlink(w->s, H1, 1), 0);
	assert_int_equal(subnet_relink(w->s, S1, 1), -ENOTCONN);
	assert_int_equal(w->s->counters[port_of(w->s, H1, 1)].all[COUNT_LINK_DOWNED], 3);
}

static void cables(void **state)
{
	struct world *w = *state;
	uint32_t peer;
	uint8_t port;

	assert_int_equal(subnet_cable(w->s, H0, 2, &peer, &port), 0);
	assert_int_equal(peer, S1);
	assert_int_equal(port, 3);
	assert_int_equal(subnet_cable(w->s, S1, 4, &peer, &port), -ENOTCONN);
	assert_int_equal(subnet_cable(w->s, S1, 5, &peer, &port), -EINVAL);
	assert_int_equal(subnet_cable(w->s, S1, 0, &peer, &port), -EINVAL);
	assert_int_equal(subnet_unlink(w->s, S1, 3), 0);
	assert_int_equal(subnet_cable(w->s, H0, 2, &peer, &port), -ENOTCONN);
}

static void new_guids(void **state)
{
	static const struct {
		uint32_t node;
		uint8_t port;
		int err;
		uint64_t node_guid, port_guid;
	} cases[] = {
		{H0, 0, 0, 0x77, 0x100001},
		{H0, 1, 0, 0x77, 0x77},
		{H0, 3, -EINVAL, 0x77, 0x77},
		{S0, 0, 0, 0x77, 0x77},
		{S0, 1, -EINVAL, 0x77, 0x77},
	};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint8_t data[SMP_DATA_SIZE] = {0};
		struct node_info n;

		assert_int_equal(
			subnet_set_guid(w->s, cases[i].node, cases[i].port, 0x77), cases[i].err);
		assert_int_equal(world_local(w, cases[i].node, cases[i].node < S0, MAD_GET,
					 SMP_NODE_INFO, 0, data),
			0);
		wire_unpack(&node_info_format, data, &n);
		assert_int_equal(n.node_guid, cases[i].node_guid);
		assert_int_equal(n.port_guid, cases[i].port_guid);
	}
	assert_int_equal(w->events[H0][1], SUBNET_GID_CHANGE);
	assert_int_equal(w->events[S0][0], SUBNET_GID_CHANGE);
	assert_int_equal(w->events[H0][2], 0);
}

/* One number that says to who shows ports that they may be other ones. */
static void changes_are_told(void **state)
{
	struct world *w = *state;
	uint64_t before = subnet_changes(w->s);
	struct port_info i;

	assert_int_equal(world_get_port(w, H0, 1, &i), 0);
	i.lid = LID_MULTICAST;
	i.state = i.phys_state = 0;
	assert_int_equal(world_set_port(w, H0, 1, &i), SMP_INVALID);
	assert_int_equal(subnet_changes(w->s), before);
	assert_int_equal(world_get_port(w, H0, 1, &i), 0);
	i.sm_lid = LID_H1;
	i.state = i.phys_state = 0;
	assert_int_equal(world_set_port(w, H0, 1, &i), 0);
	assert_int_not_equal(subnet_changes(w->s), before);
	before = subnet_changes(w->s);
	assert_int_equal(subnet_set_sm(w->s, H0, 1, false), 0); /* it was none */
	assert_int_equal(subnet_changes(w->s), before);
	assert_int_equal(subnet_set_sm(w->s, H0, 1, true), 0);
	assert_int_not_equal(subnet_changes(w->s), before);
	before = subnet_changes(w->s);
	assert_int_equal(subnet_set_system_guid(w->s, H0, 0x78), 0);
	assert_int_not_equal(subnet_changes(w->s), before);
	before = subnet_changes(w->s);
	assert_int_equal(subnet_unlink(w->s, H0, 1), 0);
	assert_int_not_equal(subnet_changes(w->s), before);
}

static void set_phys(struct world *w, uint32_t node, uint8_t port, uint8_t phys)
{
	struct port_info i;

	assert_int_equal(world_get_port(w, node, port, &i), 0);
	i.state = 0;
	i.phys_state = phys;
	assert_int_equal(world_set_port(w, node, port, &i), 0);
}

static void disabled_ports(void **state)
{
	struct world *w = *state;
	struct port_info i;

	set_phys(w, S0, 2, PHYS_DISABLED);
	assert_int_equal(world_get_port(w, S1, 2, &i), 0);
	assert_int_equal(i.state, PORT_DOWN);
	assert_int_equal(i.phys_state, PHYS_POLLING);
	set_phys(w, S1, 2, PHYS_POLLING); /* alone it does not come up */
	assert_int_equal(world_get_port(w, S1, 2, &i), 0);
	assert_int_equal(i.state, PORT_DOWN);
	assert_int_equal(subnet_unlink(w->s, S0, 2), 0);
	assert_int_equal(subnet_relink(w->s, S0, 2), 0);
	assert_int_equal(world_get_port(w, S0, 2, &i), 0);
	assert_int_equal(i.phys_state, PHYS_DISABLED);
	set_phys(w, S0, 2, PHYS_POLLING);
	assert_int_equal(world_get_port(w, S1, 2, &i), 0);
	assert_int_equal(i.state, PORT_INIT);
}

/* Widths and speeds are agreed upon when the link is trained. */
static void negotiation(void **state)
{
	struct world *w = *state;
	struct port_info i;

	assert_int_equal(world_get_port(w, S0, 1, &i), 0);
	i.state = i.phys_state = 0;
	i.width_enabled = 1;
	i.speed_enabled = 3;
	i.ext_speed_enabled = 30;
	assert_int_equal(world_set_port(w, S0, 1, &i), 0);
	assert_int_equal(i.width_active, 2);
	set_phys(w, H0, 1, PHYS_POLLING);
	assert_int_equal(world_get_port(w, H0, 1, &i), 0);
	assert_int_equal(i.width_active, 1);
	assert_int_equal(i.speed_active, 2);
	assert_int_equal(i.ext_speed_active, 0);
	i.state = i.phys_state = 0;
	i.width_enabled = 2;
	assert_int_equal(world_set_port(w, H0, 1, &i), 0);
	set_phys(w, H0, 1, PHYS_POLLING);
	assert_int_equal(world_get_port(w, H0, 1, &i), 0);
	assert_int_equal(i.phys_state, PHYS_POLLING); /* nothing in common */
}

static void mkeys(void **state)
{
	enum { KEY = 0x42 };
	static const struct {
		uint8_t protect, method;
		uint64_t mkey;
		int status;
		uint64_t shown;
	} cases[] = {
		{0, MAD_GET, 0, 0, KEY},
		{0, MAD_SET, 0, -1, 0},
		{1, MAD_GET, 0, 0, 0},
		{1, MAD_GET, KEY, 0, KEY},
		{1, MAD_SET, 1, -1, 0},
		{2, MAD_GET, 0, -1, 0},
		{2, MAD_GET, KEY, 0, KEY},
		{3, MAD_GET, 1, -1, 0},
		{3, MAD_SET, KEY, 0, KEY},
	};
	struct world *w = *state;
	struct port_info i;
	unsigned bad = 0;

	world_up(w);
	for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
		assert_int_equal(world_get_port(w, H1, 1, &i), 0);
		i.state = i.phys_state = 0;
		i.mkey = KEY;
		i.mkey_protect = cases[n].protect;
		assert_int_equal(world_set_port(w, H1, 1, &i), 0);
		assert_int_equal(
			world_keyed(w, cases[n].method, cases[n].mkey, &i), cases[n].status);
		if (cases[n].status)
			bad++;
		else
			assert_int_equal(i.mkey, cases[n].shown);
	}
	assert_int_equal(subnet_drops(w->s, SUBNET_DROP_MKEY), bad);
	assert_int_equal(world_get_port(w, H1, 1, &i), 0);
	assert_int_equal(i.mkey_violations, bad);
	i.state = i.phys_state = 0;
	i.mkey_violations = 7;
	assert_int_equal(world_set_port(w, H1, 1, &i), 0);
	assert_int_equal(i.mkey_violations, bad);
	i.state = i.phys_state = 0;
	i.mkey_violations = 0;
	assert_int_equal(world_set_port(w, H1, 1, &i), 0);
	assert_int_equal(i.mkey_violations, 0);
}

static void mkey_lease(void **state)
{
	struct world *w = *state;
	struct port_info i;

	world_up(w);
	assert_int_equal(world_get_port(w, H1, 1, &i), 0);
	i.state = i.phys_state = 0;
	i.mkey = 42;
	i.mkey_protect = 2;
	i.mkey_lease = 10;
	assert_int_equal(world_set_port(w, H1, 1, &i), 0);
	w->now += 100 * NSEC_PER_SEC; /* it does not run yet */
	assert_int_equal(world_keyed(w, MAD_GET, 1, &i), -1);
	w->now += 9 * NSEC_PER_SEC;
	assert_int_equal(world_keyed(w, MAD_GET, 42, &i), 0); /* its holder lives */
	w->now += 9 * NSEC_PER_SEC;
	assert_int_equal(world_keyed(w, MAD_GET, 1, &i), -1);
	w->now += 10 * NSEC_PER_SEC;
	assert_int_equal(world_keyed(w, MAD_GET, 1, &i), 0);
	assert_int_equal(i.mkey_protect, 0);
	assert_int_equal(i.mkey, 42);
}

static void refusals(void **state)
{
	static const struct {
		uint8_t method, version;
		uint16_t attr;
		int status;
	} cases[] = {
		{MAD_GET, 1, 0x1a, SMP_UNSUPPORTED},
		{MAD_GET, 1, 0x1c, SMP_UNSUPPORTED},
		{MAD_SET, 1, 0x31, SMP_UNSUPPORTED},
		{MAD_SET, 1, SMP_NOTICE, SMP_UNSUPPORTED},
		{MAD_GET, 2, SMP_NODE_INFO, SMP_BAD_VERSION},
	};
	struct world *w = *state;

	world_up(w);
	for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
		const struct smp_hdr h = {.mgmt_class = MAD_CLASS_SUBN_LID,
			.class_version = cases[n].version,
			.method = cases[n].method,
			.attr = cases[n].attr};
		uint8_t mad[MAD_SIZE] = {0};

		assert_int_equal(world_smp(w, &h, LID_S1, mad), 1);
		assert_int_equal(world_last(w).status, cases[n].status);
	}
}

/* A topology whose ends do not fit. */
static void bad_topologies(void **state)
{
	struct topo_port a[2] = {{.peer = TOPO_NONE}, {.peer = 1, .peer_port = 1}};
	struct topo_port b[2] = {{.peer = TOPO_NONE}, {.peer = TOPO_NONE}};
	struct topo_node nodes[2] = {{.kind = TOPO_CA, .n_ports = 1, .ports = a},
		{.kind = TOPO_CA, .n_ports = 1, .ports = b}};
	const struct topo t = {.nodes = nodes, .n_nodes = 2, .n_cas = 2};
	const struct subnet_ops ops = {0};
	struct subnet *s;

	(void)state;
	assert_int_equal(subnet_create(&s, &t, &ops), -EINVAL);
	a[1].peer_port = 2;
	assert_int_equal(subnet_create(&s, &t, &ops), -EINVAL);
	a[1].peer = 0;
	a[1].peer_port = 1; /* itself */
	assert_int_equal(subnet_create(&s, &t, &ops), -EINVAL);
	a[1].peer = TOPO_NONE;
	assert_int_equal(subnet_create(&s, &t, &ops), 0);
	subnet_free(s);
}

#define T(f) cmocka_unit_test_setup_teardown(f, world_set_up, world_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(fresh_ports),
		T(node_info),
		T(port_info_rules),
		T(invalid_changes_nothing),
		T(events_are_told),
		T(switch_info),
		T(tables_keep),
		T(defaults),
		T(guids),
		T(links),
		T(cables),
		T(new_guids),
		T(changes_are_told),
		T(disabled_ports),
		T(negotiation),
		T(mkeys),
		T(mkey_lease),
		T(refusals),
		cmocka_unit_test(bad_topologies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
