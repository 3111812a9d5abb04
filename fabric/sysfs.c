// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/sysfs.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "fabric/tree.h"

enum { GID_STRING = 40, LINK_LAYER_INFINIBAND = 1, PORT_CM_SUP = 1 << 16, REMOVE_FDS = 8 };

static const char *const port_states[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};

static const char *const phys_states[] = {"<unknown>", "Sleep", "Polling", "Disabled",
	"PortConfigurationTraining", "LinkUp", "LinkErrorRecovery", "Phy Test"};

static const char *const zero_counters[] = {"VL15_dropped", "excessive_buffer_overrun_errors",
	"link_downed", "link_error_recovery", "local_link_integrity_errors",
	"multicast_rcv_packets", "multicast_xmit_packets", "port_rcv_constraint_errors",
	"port_rcv_data", "port_rcv_errors", "port_rcv_packets", "port_rcv_remote_physical_errors",
	"port_rcv_switch_relay_errors", "port_xmit_constraint_errors", "port_xmit_data",
	"port_xmit_discards", "port_xmit_packets", "port_xmit_wait", "symbol_error",
	"unicast_rcv_packets", "unicast_xmit_packets"};

struct link_speed {
	uint8_t code;       /* as ibv_port_attr.active_speed */
	unsigned tenths;    /* Gb/s of one lane, times ten */
	const char *suffix; /* as the kernel names it */
};

static const struct link_speed link_speeds[] = {{1, 25, ""}, {2, 50, " DDR"}, {4, 100, " QDR"},
	{8, 100, " FDR10"}, {16, 140, " FDR"}, {32, 250, " EDR"}, {64, 500, " HDR"},
	{128, 1000, " NDR"}};

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

static void put_rate(struct tree *t, const char *ports, const struct fabric_port *port)
{
	const struct link_speed *speed = &link_speeds[0];
	unsigned tenths;

	for (size_t i = 0; i < sizeof link_speeds / sizeof link_speeds[0]; i++)
		if (link_speeds[i].code == port->active_speed)
			speed = &link_speeds[i];
	tenths = speed->tenths * lanes(port->active_width);
	tree_put(t, tree_path("%s/rate", ports).s, "%u%s Gb/sec (%uX%s)\n", tenths / 10,
		tenths % 10 ? ".5" : "", lanes(port->active_width), speed->suffix);
}

static const char *name_of(const char *const *names, size_t n, unsigned i)
{
	return i < n ? names[i] : names[0];
}

static void put_port_state(struct tree *t, const char *ports, const struct fabric_port *port)
{
	bool ib = port->link_layer == LINK_LAYER_INFINIBAND;

	tree_put(t, tree_path("%s/state", ports).s, "%u: %s\n", port->state,
		name_of(port_states, sizeof port_states / sizeof *port_states, port->state));
	tree_put(t, tree_path("%s/phys_state", ports).s, "%u: %s\n", port->phys_state,
		name_of(phys_states, sizeof phys_states / sizeof *phys_states, port->phys_state));
	tree_put(t, tree_path("%s/link_layer", ports).s, "%s\n", ib ? "InfiniBand" : "Ethernet");
	tree_put(t, tree_path("%s/lid", ports).s, "0x%x\n", port->lid);
	tree_put(t, tree_path("%s/sm_lid", ports).s, "0x%x\n", port->sm_lid);
	tree_put(t, tree_path("%s/lid_mask_count", ports).s, "0\n");
	tree_put(t, tree_path("%s/sm_sl", ports).s, "0\n");
	tree_put(t, tree_path("%s/cap_mask", ports).s, "0x%08x\n", PORT_CM_SUP);
	tree_put(t, tree_path("%s/has_smi", ports).s, "%d\n", ib);
	put_rate(t, ports, port);
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

static void put_gid(struct tree *t, const char *ports, const struct fabric_gid *gid, unsigned i)
{
	struct tree_path type = tree_path("%s/gid_attrs/types/%u", ports, i);
	struct tree_path ndev = tree_path("%s/gid_attrs/ndevs/%u", ports, i);
	char text[GID_STRING];

	if (gid_is_zero(gid)) {
		tree_put_shared(t, tree_path("%s/gids/%u", ports, i).s);
		tree_drop(t, type.s);
		tree_drop(t, ndev.s);
		return;
	}
	gid_text(gid->raw, text);
	tree_put(t, tree_path("%s/gids/%u", ports, i).s, "%s\n", text);
	tree_put(t, type.s, "%s\n", gid->type == 2 ? "RoCE v2" : "IB/RoCE v1");
	if (gid->ifname[0])
		tree_put(t, ndev.s, "%.16s\n", gid->ifname);
	else
		tree_drop(t, ndev.s);
}

static void put_port(struct tree *t, const char *hca, const struct fabric_port *port)
{
	struct tree_path ports = tree_path("%s/ports/1", hca);
	static const char *const subdirs[] = {"", "/gids", "/gid_attrs", "/gid_attrs/types",
		"/gid_attrs/ndevs", "/pkeys", "/counters", "/hw_counters"};
	uint32_t n_pkeys = port->n_pkeys < FABRIC_MAX_PKEYS ? port->n_pkeys : FABRIC_MAX_PKEYS;

	tree_dir(t, tree_path("%s/ports", hca).s);
	for (size_t i = 0; i < sizeof subdirs / sizeof *subdirs; i++)
		tree_dir(t, tree_path("%s%s", ports.s, subdirs[i]).s);
	put_port_state(t, ports.s, port);
	tree_share(t, "0000:0000:0000:0000:0000:0000:0000:0000\n");
	for (unsigned i = 0; i < FABRIC_MAX_GIDS; i++)
		put_gid(t, ports.s, &port->gid[i], i);
	for (unsigned i = 0; i < n_pkeys; i++)
		tree_put(t, tree_path("%s/pkeys/%u", ports.s, i).s, "0x%04x\n", port->pkey[i]);
	for (size_t i = 0; i < sizeof zero_counters / sizeof *zero_counters; i++)
		tree_put(t, tree_path("%s/counters/%s", ports.s, zero_counters[i]).s, "0\n");
	tree_put(t, tree_path("%s/hw_counters/lifespan", ports.s).s, "10\n");
}

static void put_cpus(struct tree *t, const char *device)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);
	char mask[1024], *p = mask;

	if (n < 1 || n > 2048)
		n = 1;
	for (long word = (n - 1) / 32; word >= 0; word--) {
		long bits = n - word * 32 < 32 ? n - word * 32 : 32;

		p += sprintf(p, "%s%0*x", p == mask ? "" : ",", (int)(bits + 3) / 4,
			(unsigned)((1ull << bits) - 1));
	}
	tree_put(t, tree_path("%s/local_cpus", device).s, "%s\n", mask);
	if (n == 1)
		tree_put(t, tree_path("%s/local_cpulist", device).s, "0\n");
	else
		tree_put(t, tree_path("%s/local_cpulist", device).s, "0-%ld\n", n - 1);
}

/* The interfaces behind the GIDs, as links to what the kernel shows of them. */
static void put_net(struct tree *t, const char *device, const struct fabric_port *port)
{
	const char *names[FABRIC_MAX_GIDS];
	size_t n = 0;
	struct tree_path net = tree_path("%s/net", device);

	tree_dir(t, net.s);
	for (size_t i = 0; i < FABRIC_MAX_GIDS; i++) {
		const char *name = port->gid[i].ifname;
		size_t known = 0;

		if (!name[0] || name[0] == '.' || memchr(name, '/', sizeof port->gid[i].ifname))
			continue;
		while (known < n && strncmp(names[known], name, sizeof port->gid[i].ifname))
			known++;
		if (known < n)
			continue;
		names[n++] = name;
		tree_link(t, tree_path("%s/%.16s", net.s, name).s,
			tree_path("/sys/class/net/%.16s", name).s);
	}
	tree_keep_only(t, net.s, names, n);
}

static void put_device(struct tree *t, const char *hca, const struct fabric_page *page)
{
	struct tree_path device = tree_path("%s/device", hca);

	tree_dir(t, device.s);
	tree_put(t, tree_path("%s/vendor", device.s).s, "0xffffff\n");
	tree_put(t, tree_path("%s/device", device.s).s, "0x0000\n");
	tree_put(t, tree_path("%s/numa_node", device.s).s, "-1\n");
	put_cpus(t, device.s);
	put_net(t, device.s, &page->port);
}

static void put_guid(struct tree *t, const char *path, uint64_t guid)
{
	uint8_t b[8];

	memcpy(b, &guid, sizeof b);
	tree_put(t, path, "%02x%02x:%02x%02x:%02x%02x:%02x%02x\n", b[0], b[1], b[2], b[3], b[4],
		b[5], b[6], b[7]);
}

static void put_hca(struct tree *t, const struct fabric_page *page)
{
	struct tree_path hca = tree_path("sys/class/infiniband/%.63s", page->device);
	struct utsname host = {0};

	uname(&host);
	tree_dir(t, hca.s);
	tree_put(t, tree_path("%s/node_type", hca.s).s, "1: CA\n");
	put_guid(t, tree_path("%s/node_guid", hca.s).s, page->node_guid);
	put_guid(t, tree_path("%s/sys_image_guid", hca.s).s, page->sys_image_guid);
	tree_put(t, tree_path("%s/node_desc", hca.s).s, "%s %.63s\n", host.nodename, page->device);
	tree_put(t, tree_path("%s/fw_ver", hca.s).s, "%s\n", WEFT_VERSION);
	tree_put(t, tree_path("%s/hca_type", hca.s).s, "weft\n");
	tree_put(t, tree_path("%s/hw_rev", hca.s).s, "0\n");
	tree_put(t, tree_path("%s/board_id", hca.s).s, "weft\n");
	put_device(t, hca.s, page);
	put_port(t, hca.s, &page->port);
}

static void put_uverbs(struct tree *t, const struct fabric_page *page)
{
	tree_dir(t, "sys/class/infiniband_verbs/uverbs0");
	tree_put(t, "sys/class/infiniband_verbs/abi_version", "6\n");
	tree_put(t, "sys/class/infiniband_verbs/uverbs0/abi_version", "1\n");
	tree_put(t, "sys/class/infiniband_verbs/uverbs0/ibdev", "%.63s\n", page->device);
	tree_put(t, "sys/class/infiniband_verbs/uverbs0/dev", "%d:%d\n", SYSFS_UVERBS_MAJOR,
		SYSFS_UVERBS_MINOR);
	tree_link(t, "sys/class/infiniband_verbs/uverbs0/device",
		tree_path("../../infiniband/%.63s/device", page->device).s);
	tree_link(t, "dev/infiniband/uverbs0", "/dev/null");
}

int sysfs_write(int at, const char *dir, const struct fabric_page *page)
{
	static const char *const top[] = {"sys", "sys/class", "sys/class/infiniband",
		"sys/class/infiniband_verbs", "dev", "dev/infiniband"};
	struct tree t;
	int rc = tree_open(&t, at, dir);

	if (rc)
		return rc;
	for (size_t i = 0; i < sizeof top / sizeof *top; i++)
		tree_dir(&t, top[i]);
	put_hca(&t, page);
	put_uverbs(&t, page);
	return tree_close(&t);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path) && errno != ENOENT ? -1 : 0;
}

int sysfs_remove(const char *dir)
{
	if (nftw(dir, remove_one, REMOVE_FDS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT))
		return errno == ENOENT ? 0 : -errno;
	return 0;
}
