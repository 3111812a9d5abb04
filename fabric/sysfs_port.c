// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/sysfs_port.h"

#include <stdio.h>
#include <string.h>

enum { GID_STRING = 40, LINK_LAYER_INFINIBAND = 1 };

static const char *const port_states[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};

static const char *const phys_states[] = {"<unknown>", "Sleep", "Polling", "Disabled",
	"PortConfigurationTraining", "LinkUp", "LinkErrorRecovery", "Phy Test"};

static const char *const counters[] = {"VL15_dropped", "excessive_buffer_overrun_errors",
	"link_downed", "link_error_recovery", "local_link_integrity_errors",
	"multicast_rcv_packets", "multicast_xmit_packets", "port_rcv_constraint_errors",
	"port_rcv_data", "port_rcv_errors", "port_rcv_packets", "port_rcv_remote_physical_errors",
	"port_rcv_switch_relay_errors", "port_xmit_constraint_errors", "port_xmit_data",
	"port_xmit_discards", "port_xmit_packets", "port_xmit_wait", "symbol_error",
	"unicast_rcv_packets", "unicast_xmit_packets"};

struct link_speed {
	uint16_t code;      /* as struct fabric_port has it */
	unsigned tenths;    /* Gb/s of one lane, times ten */
	const char *suffix; /* as the kernel names it */
};

static const struct link_speed link_speeds[] = {{1, 25, ""}, {2, 50, " DDR"}, {4, 100, " QDR"},
	{8, 100, " FDR10"}, {16, 140, " FDR"}, {32, 250, " EDR"}, {64, 500, " HDR"},
	{128, 1000, " NDR"}, {256, 2000, " XDR"}};

static unsigned lanes(uint8_t width)
{
	switch (width) {
	case 2:
		return 4;
	case 4:
		return 8;
	case 8:
		return 12;
	case 16:
		return 2;
	default:
		return 1;
	}
}

static void put_rate(struct tree *t, const char *dir, const struct fabric_port *port)
{
	const struct link_speed *speed = &link_speeds[0];
	unsigned tenths;

	for (size_t i = 0; i < sizeof link_speeds / sizeof link_speeds[0]; i++)
		if (link_speeds[i].code == port->active_speed)
			speed = &link_speeds[i];
	tenths = speed->tenths * lanes(port->active_width);
	tree_put(t, tree_path("%s/rate", dir).s, "%u%s Gb/sec (%uX%s)\n", tenths / 10,
		tenths % 10 ? ".5" : "", lanes(port->active_width), speed->suffix);
}

static const char *name_of(const char *const *names, size_t n, unsigned i)
{
	return i < n ? names[i] : names[0];
}

static void put_state(struct tree *t, const char *dir, const struct fabric_port *port)
{
	bool ib = port->link_layer == LINK_LAYER_INFINIBAND;

	tree_put(t, tree_path("%s/state", dir).s, "%u: %s\n", port->state,
		name_of(port_states, sizeof port_states / sizeof *port_states, port->state));
	tree_put(t, tree_path("%s/phys_state", dir).s, "%u: %s\n", port->phys_state,
		name_of(phys_states, sizeof phys_states / sizeof *phys_states, port->phys_state));
	tree_put(t, tree_path("%s/link_layer", dir).s, "%s\n", ib ? "InfiniBand" : "Ethernet");
	tree_put(t, tree_path("%s/lid", dir).s, "0x%x\n", port->lid);
	tree_put(t, tree_path("%s/sm_lid", dir).s, "0x%x\n", port->sm_lid);
	tree_put(t, tree_path("%s/lid_mask_count", dir).s, "%u\n", port->lmc);
	tree_put(t, tree_path("%s/sm_sl", dir).s, "%u\n", port->sm_sl);
	tree_put(t, tree_path("%s/cap_mask", dir).s, "0x%08x\n", port->cap_mask);
	tree_put(t, tree_path("%s/has_smi", dir).s, "%d\n", ib);
}

static bool gid_is_zero(const struct fabric_gid *gid)
{
	static const uint8_t zero[16];

	return !memcmp(gid->raw, zero, sizeof zero);
}

static void gid_text(const uint8_t *raw, char *out)
{
	for (int i = 0; i < 8; i++)
		out += sprintf(out, i ? ":%02x%02x" : "%02x%02x", raw[2 * i], raw[2 * i + 1]);
}

static void put_gid(struct tree *t, const char *dir, const struct fabric_gid *gid, unsigned i)
{
	struct tree_path type = tree_path("%s/gid_attrs/types/%u", dir, i);
	struct tree_path ndev = tree_path("%s/gid_attrs/ndevs/%u", dir, i);
	char text[GID_STRING];

	if (gid_is_zero(gid)) {
		tree_put_shared(t, TREE_ZERO_GID, tree_path("%s/gids/%u", dir, i).s);
		tree_put_shared(t, TREE_UNREADABLE, type.s);
		tree_put_shared(t, TREE_UNREADABLE, ndev.s);
		return;
	}
	gid_text(gid->raw, text);
	tree_put(t, tree_path("%s/gids/%u", dir, i).s, "%s\n", text);
	tree_put(t, type.s, "%s\n", gid->type == 2 ? "RoCE v2" : "IB/RoCE v1");
	if (gid->ifname[0])
		tree_put(t, ndev.s, "%.16s\n", gid->ifname);
	else
		tree_put_shared(t, TREE_UNREADABLE, ndev.s);
}

static void put_tables(struct tree *t, const char *dir, const struct fabric_port *port)
{
	uint32_t n_pkeys = port->n_pkeys < FABRIC_MAX_PKEYS ? port->n_pkeys : FABRIC_MAX_PKEYS;

	for (unsigned i = 0; i < FABRIC_MAX_GIDS; i++)
		put_gid(t, dir, &port->gid[i], i);
	for (unsigned i = 0; i < n_pkeys; i++) {
		struct tree_path path = tree_path("%s/pkeys/%u", dir, i);

		if (port->pkey[i])
			tree_put(t, path.s, "0x%04x\n", port->pkey[i]);
		else
			tree_put_shared(t, TREE_NO_PKEY, path.s);
	}
}

static void put_counters(struct tree *t, const char *dir)
{
	for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
		tree_put_first(t, TREE_ZERO, tree_path("%s/counters/%s", dir, counters[i]).s);
	tree_put(t, tree_path("%s/hw_counters/lifespan", dir).s, "10\n");
}

void sysfs_put_port(
	struct tree *t, const char *hca, uint32_t number, const struct fabric_port *port)
{
	struct tree_path dir = tree_path("%s/ports/%u", hca, number);
	static const char *const subdirs[] = {"", "/gids", "/gid_attrs", "/gid_attrs/types",
		"/gid_attrs/ndevs", "/pkeys", "/counters", "/hw_counters"};

	for (size_t i = 0; i < sizeof subdirs / sizeof *subdirs; i++)
		tree_dir(t, tree_path("%s%s", dir.s, subdirs[i]).s);
	tree_share(t);
	put_state(t, dir.s, port);
	put_rate(t, dir.s, port);
	put_tables(t, dir.s, port);
	put_counters(t, dir.s);
}
