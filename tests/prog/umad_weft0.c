// SPDX-License-Identifier: BSD-3-Clause
/*
 * weft0 through libibumad, without the path shim: it finds the fabric's tree by itself, and starts
 * weftd for it.  No umad file can be opened yet, which it says, and in the log, too.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/umad.h>

#include "tests/lib/check.h"

static void check_device(void)
{
	char names[4][UMAD_CA_NAME_LEN];
	umad_ca_t ca;

	CHECK_EQ(umad_get_cas_names(names, 4), 1);
	CHECK(!strcmp(names[0], "weft0"));
	if (!CHECK_EQ(umad_get_ca(NULL, &ca), 0))
		return;
	CHECK(!strcmp(ca.ca_name, "weft0"));
	CHECK(!strcmp(ca.ca_type, "weft"));
	CHECK_EQ(ca.node_type, 1);
	CHECK_EQ(ca.numports, 1);
	CHECK(ca.node_guid);
	CHECK(!ca.ports[0] && ca.ports[1]);
	CHECK_EQ(umad_release_ca(&ca), 0);
}

static void check_port(void)
{
	__be64 guids[2];
	umad_port_t port;

	if (!CHECK_EQ(umad_get_port("weft0", 1, &port), 0))
		return;
	CHECK_EQ(port.state, 4);
	CHECK_EQ(port.phys_state, 5);
	CHECK(!strcmp(port.link_layer, "Ethernet"));
	CHECK_EQ(be64toh(port.gid_prefix), 0xfe80000000000000);
	CHECK(port.port_guid);
	CHECK(port.pkeys_size >= 1 && port.pkeys[0] == 0xffff);
	CHECK_EQ(umad_get_ca_portguids("weft0", guids, 2), 2);
	CHECK_EQ(guids[1], port.port_guid);
	CHECK_EQ(umad_release_port(&port), 0);
}

static void check_no_file(void)
{
	char issm[64];

	CHECK_EQ(umad_init(), 0);
	CHECK_EQ(umad_open_port("weft0", 1), -EIO);
	CHECK_EQ(umad_open_port("weft0", 2), -EINVAL);
	CHECK_EQ(umad_get_issm_path("weft0", 1, issm, sizeof issm), 0);
	CHECK(!strcmp(issm, "/dev/infiniband/issm0"));
	CHECK_EQ(umad_done(), 0);
}

int main(void)
{
	char path[256], how[300];

	snprintf(path, sizeof path, "%s/log", getenv("WEFT_RUNTIME_DIR"));
	snprintf(how, sizeof how, "warn:%s", path);
	setenv("WEFT_LOG", how, 1);
	check_device();
	check_port();
	check_no_file();
	CHECK_EQ(lines_with(path, "no umad files"), 1);
	return check_result();
}
