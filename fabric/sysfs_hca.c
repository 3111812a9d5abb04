// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/sysfs_hca.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "fabric/sysfs_port.h"

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

/* Names of interfaces, each once. */
struct ifnames {
	const char *name[FABRIC_MAX_PORTS * FABRIC_MAX_GIDS];
	size_t n;
};

/* False: it is none, or it is there already. */
static bool add_name(struct ifnames *names, const char *name)
{
	const size_t size = sizeof((struct fabric_gid *)0)->ifname;

	if (!name[0] || name[0] == '.' || memchr(name, '/', size))
		return false;
	for (size_t i = 0; i < names->n; i++)
		if (!strncmp(names->name[i], name, size))
			return false;
	names->name[names->n++] = name;
	return true;
}

static void put_links(
	struct tree *t, const char *net, const struct fabric_port *port, struct ifnames *names)
{
	for (size_t i = 0; i < FABRIC_MAX_GIDS; i++) {
		const char *name = port->gid[i].ifname;

		if (add_name(names, name))
			tree_link(t, tree_path("%s/%.16s", net, name).s,
				tree_path("/sys/class/net/%.16s", name).s);
	}
}

/* The interfaces behind the GIDs, as links to what the kernel shows of them. */
static void put_net(struct tree *t, const char *device, const struct fabric_page *page)
{
	struct tree_path net = tree_path("%s/net", device);
	const struct fabric_port *port;
	struct ifnames names = {.n = 0};

	tree_dir(t, net.s);
	for (uint32_t n = fabric_first_port(page); (port = fabric_port(page, n)); n++)
		put_links(t, net.s, port, &names);
	tree_keep_only(t, net.s, names.name, names.n);
}

/* The classes' entries of the device, which lie below it on hardware. */
static void put_entries(struct tree *t, const char *device, const struct fabric_page *page)
{
	static const char *const mads[] = {"umad", "issm"};

	tree_dir(t, tree_path("%s/infiniband", device).s);
	tree_link(t, tree_path("%s/infiniband/%.63s", device, page->device).s,
		tree_path("../../../%.63s", page->device).s);
	tree_dir(t, tree_path("%s/infiniband_mad", device).s);
	for (unsigned n = 0; n < 2 * FABRIC_MAX_PORTS && n < 2 * page->n_ports; n++)
		tree_link(t, tree_path("%s/infiniband_mad/%s%u", device, mads[n % 2], n / 2).s,
			tree_path("../../../../infiniband_mad/%s%u", mads[n % 2], n / 2).s);
	if (page->node_type == FABRIC_SWITCH)
		return;
	tree_dir(t, tree_path("%s/infiniband_verbs", device).s);
	tree_link(t, tree_path("%s/infiniband_verbs/uverbs0", device).s,
		"../../../../infiniband_verbs/uverbs0");
}

static void put_device(struct tree *t, const char *hca, const struct fabric_page *page)
{
	struct tree_path device = tree_path("%s/device", hca);

	tree_dir(t, device.s);
	tree_put(t, tree_path("%s/vendor", device.s).s, "0xffffff\n");
	tree_put(t, tree_path("%s/device", device.s).s, "0x0000\n");
	tree_put(t, tree_path("%s/numa_node", device.s).s, "-1\n");
	put_cpus(t, device.s);
	put_net(t, device.s, page);
	put_entries(t, device.s, page);
}

static void put_guid(struct tree *t, const char *path, uint64_t guid)
{
	uint8_t b[8];

	memcpy(b, &guid, sizeof b);
	tree_put(t, path, "%02x%02x:%02x%02x:%02x%02x:%02x%02x\n", b[0], b[1], b[2], b[3], b[4],
		b[5], b[6], b[7]);
}

static const char *type_name(uint32_t type)
{
	switch (type) {
	case FABRIC_SWITCH:
		return "2: switch";
	case FABRIC_ROUTER:
		return "3: router";
	default:
		return "1: CA";
	}
}

void sysfs_put_hca(struct tree *t, const struct fabric_page *page)
{
	struct tree_path hca = tree_path("sys/class/infiniband/%.63s", page->device);
	const struct fabric_port *port;
	struct utsname host = {0};

	uname(&host);
	tree_dir(t, hca.s);
	tree_put(t, tree_path("%s/node_type", hca.s).s, "%s\n", type_name(page->node_type));
	put_guid(t, tree_path("%s/node_guid", hca.s).s, page->node_guid);
	put_guid(t, tree_path("%s/sys_image_guid", hca.s).s, page->sys_image_guid);
	if (page->description[0])
		tree_put(t, tree_path("%s/node_desc", hca.s).s, "%.64s\n", page->description);
	else
		tree_put(t, tree_path("%s/node_desc", hca.s).s, "%s %.63s\n", host.nodename,
			page->device);
	tree_put(t, tree_path("%s/fw_ver", hca.s).s, "%s\n", WEFT_VERSION);
	tree_put(t, tree_path("%s/hca_type", hca.s).s, "weft\n");
	tree_put(t, tree_path("%s/hw_rev", hca.s).s, "0\n");
	tree_put(t, tree_path("%s/board_id", hca.s).s, "weft\n");
	put_device(t, hca.s, page);
	tree_dir(t, tree_path("%s/ports", hca.s).s);
	for (uint32_t n = fabric_first_port(page); (port = fabric_port(page, n)); n++)
		sysfs_put_port(t, hca.s, n, port);
}
