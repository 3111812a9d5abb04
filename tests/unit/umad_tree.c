// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/umad_tree.h"

#include <err.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric/sysfs.h"
#include "fabric/tree.h"

static char top[] = "/tmp/weft-umad-test-XXXXXX";
static char root[PATH_MAX], class_dir[PATH_MAX];

static struct tree open_tree(void)
{
	struct tree t;

	if (tree_open(&t, AT_FDCWD, class_dir))
		err(1, "%s", class_dir);
	return t;
}

static void end_tree(struct tree *t)
{
	int rc = tree_close(t);

	if (rc)
		errx(1, "tree: %s", strerror(-rc));
}

static void make_dirs(void)
{
	char sys[2 * PATH_MAX];
	struct tree t;

	snprintf(sys, sizeof sys, "%s/sys", root);
	if ((mkdir(root, 0755) | mkdir(sys, 0755)) < 0)
		err(1, "%s", root);
	t = open_tree();
	tree_dir(&t, "infiniband");
	tree_dir(&t, "infiniband_mad");
	tree_put(&t, "infiniband_mad/abi_version", "5\n");
	end_tree(&t);
}

void tree_start(void)
{
	if (!mkdtemp(top))
		err(1, "%s", top);
	snprintf(root, sizeof root, "%s/lab.tree", top);
	snprintf(class_dir, sizeof class_dir, "%s/lab.tree/sys/class", top);
	setenv("WEFT_RUNTIME_DIR", top, 1);
	setenv("WEFT_FABRIC", "lab", 1);
	setenv("WEFT_AUTOSTART", "0", 1);
	make_dirs();
}

void tree_clear(int all)
{
	char path[2 * PATH_MAX];
	static const char *const dirs[] = {"infiniband", "infiniband_mad"};

	if (all) {
		sysfs_remove(root);
		if (rmdir(top))
			err(1, "%s", top);
		return;
	}
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/%s", class_dir, dirs[i]);
		sysfs_remove(path);
		if (mkdir(path, 0755))
			err(1, "%s", path);
	}
	tree_set("infiniband_mad/abi_version", "5\n");
}

static void put_guid(struct tree *t, const char *path, uint64_t guid)
{
	tree_put(t, path, "%04x:%04x:%04x:%04x\n", (unsigned)(guid >> 48),
		(unsigned)(guid >> 32 & 0xffff), (unsigned)(guid >> 16 & 0xffff),
		(unsigned)(guid & 0xffff));
}

void tree_ca(const char *name, const char *node_type)
{
	struct tree t = open_tree();

	tree_dir(&t, tree_path("infiniband/%s", name).s);
	tree_dir(&t, tree_path("infiniband/%s/ports", name).s);
	tree_put(&t, tree_path("infiniband/%s/node_type", name).s, "%s\n", node_type);
	tree_put(&t, tree_path("infiniband/%s/fw_ver", name).s, "2.42.5000\n");
	tree_put(&t, tree_path("infiniband/%s/hw_rev", name).s, "1\n");
	tree_put(&t, tree_path("infiniband/%s/hca_type", name).s, "MT4099\n");
	put_guid(&t, tree_path("infiniband/%s/node_guid", name).s, 0x0002c90300abcdef);
	put_guid(&t, tree_path("infiniband/%s/sys_image_guid", name).s, 0x0002c90300abcdf2);
	end_tree(&t);
}

static const char *or_default(const char *text, const char *otherwise)
{
	return text ? text : otherwise;
}

static void put_port_numbers(struct tree *t, const char *dir, const struct tree_port *port)
{
	tree_put(t, tree_path("%s/lid", dir).s, "0x1f\n");
	tree_put(t, tree_path("%s/lid_mask_count", dir).s, "3\n");
	tree_put(t, tree_path("%s/sm_lid", dir).s, "0x2\n");
	tree_put(t, tree_path("%s/sm_sl", dir).s, "7\n");
	tree_put(t, tree_path("%s/rate", dir).s, "100 Gb/sec (4X EDR)\n");
	tree_put(t, tree_path("%s/cap_mask", dir).s, "0x%08x\n", port->cap_mask);
	tree_put(t, tree_path("%s/state", dir).s, "%s\n", or_default(port->state, "4: ACTIVE"));
	tree_put(t, tree_path("%s/phys_state", dir).s, "%s\n",
		or_default(port->phys_state, "5: LinkUp"));
	tree_put(t, tree_path("%s/link_layer", dir).s, "%s\n",
		or_default(port->link_layer, "InfiniBand"));
}

static void put_tables(struct tree *t, const char *dir, const struct tree_port *port)
{
	unsigned n = port->n_pkeys ? port->n_pkeys : 2;
	uint64_t g = port->guid;

	tree_dir(t, tree_path("%s/gids", dir).s);
	tree_put(t, tree_path("%s/gids/0", dir).s, "fe80:0000:0000:0001:%04x:%04x:%04x:%04x\n",
		(unsigned)(g >> 48), (unsigned)(g >> 32 & 0xffff), (unsigned)(g >> 16 & 0xffff),
		(unsigned)(g & 0xffff));
	tree_dir(t, tree_path("%s/pkeys", dir).s);
	for (unsigned i = 0; i < n; i++)
		tree_put(
			t, tree_path("%s/pkeys/%u", dir, i).s, "0x%04x\n", i ? 0x8000 + i : 0xffff);
}

void tree_add_port(const char *ca, int portnum, int number, const struct tree_port *port)
{
	struct tree_path dir = tree_path("infiniband/%s/ports/%d", ca, portnum);
	struct tree t = open_tree();

	tree_dir(&t, dir.s);
	put_port_numbers(&t, dir.s, port);
	put_tables(&t, dir.s, port);
	if (number >= 0) {
		tree_dir(&t, tree_path("infiniband_mad/umad%d", number).s);
		tree_put(&t, tree_path("infiniband_mad/umad%d/ibdev", number).s, "%s\n", ca);
		tree_put(&t, tree_path("infiniband_mad/umad%d/port", number).s, "%d\n", portnum);
	}
	end_tree(&t);
}

void tree_set(const char *path, const char *text)
{
	struct tree t = open_tree();

	tree_put(&t, path, "%s", text);
	end_tree(&t);
}

void tree_del(const char *path)
{
	struct tree t = open_tree();

	tree_drop(&t, path);
	end_tree(&t);
}

const char *tree_class_dir(void)
{
	return class_dir;
}
