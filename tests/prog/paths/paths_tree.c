// SPDX-License-Identifier: BSD-3-Clause
/*
 * Writes the tree of device files that weftd would keep for the fabric of this environment, with
 * known values, so that the shim can be tested without weftd (WEFT_AUTOSTART=0).  Prints where.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "fabric/sysfs.h"
#include "rdv/paths.h"

static struct fabric_page page = {
	.version = 1,
	.fabric = "default",
	.device = "weft0",
	.n_ports = 1,
	.port[0] = {.state = 4,
		.cap_mask = PORT_CAP_CM,
		.phys_state = 5,
		.max_mtu = 5,
		.active_mtu = 3,
		.link_layer = 2,
		.active_width = 2,
		.active_speed = 32,
		.n_gids = 2,
		.n_pkeys = 1,
		.pkey = {0xffff}},
};

static void set_gid(struct fabric_gid *gid, const char *text)
{
	inet_pton(AF_INET6, text, gid->raw);
	gid->type = 2;
	gid->ifindex = 1;
	strcpy(gid->ifname, "lo");
}

int main(int argc, char **argv)
{
	char dir[2 * PATH_MAX];
	struct rdv_paths p;

	if (rdv_paths_open(&p, NULL))
		return 1;
	snprintf(dir, sizeof dir, "%s/%s.tree", p.dir, p.name);
	rdv_paths_close(&p);
	page.node_guid = page.sys_image_guid = htobe64(0x0200c0fffe000001);
	set_gid(&page.port[0].gid[0], "fe80::c0ff:fe00:1");
	set_gid(&page.port[0].gid[1], argc > 1 ? argv[1] : "::ffff:127.0.0.1");
	if (sysfs_write(AT_FDCWD, dir, &page)) {
		fprintf(stderr, "cannot write %s\n", dir);
		return 1;
	}
	return puts(dir) < 0;
}
