// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/sysfs_mad.h"

#include "fabric/sysfs.h"

/* One device file: name is umadN or issmN. */
static void put_file(
	struct tree *t, const char *name, unsigned minor, const char *device, uint32_t port)
{
	struct tree_path dir = tree_path("sys/class/infiniband_mad/%s", name);

	tree_dir(t, dir.s);
	tree_put(t, tree_path("%s/ibdev", dir.s).s, "%.63s\n", device);
	tree_put(t, tree_path("%s/port", dir.s).s, "%u\n", port);
	tree_put(t, tree_path("%s/dev", dir.s).s, "%d:%u\n", SYSFS_MAJOR, minor);
	tree_link(t, tree_path("%s/device", dir.s).s,
		tree_path("../../infiniband/%.63s/device", device).s);
	tree_link(t, tree_path("dev/infiniband/%s", name).s, "/dev/null");
}

void sysfs_put_mad(struct tree *t, const struct fabric_page *page)
{
	tree_dir(t, "sys/class/infiniband_mad");
	tree_put(t, "sys/class/infiniband_mad/abi_version", "5\n");
	for (unsigned n = 0; n < FABRIC_MAX_PORTS && n < page->n_ports; n++) {
		uint32_t port = fabric_first_port(page) + n;

		put_file(t, tree_path("umad%u", n).s, SYSFS_UMAD_MINOR + n, page->device, port);
		put_file(t, tree_path("issm%u", n).s, SYSFS_ISSM_MINOR + n, page->device, port);
	}
}
