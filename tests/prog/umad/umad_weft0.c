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

enum { MAD_BYTES = 256, CLASS = 0x0a, METHOD = 5, WAIT_MS = 10000 };

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

/* A request without an answer to weft0 itself, through its GID. */
static void send_one(int fd, int sender)
{
	struct ib_mad_addr to = {.grh_present = 1, .hop_limit = 64};
	void *umad = umad_alloc(1, umad_size() + MAD_BYTES);
	uint8_t *mad = umad_get_mad(umad);
	umad_port_t port;

	CHECK_EQ(umad_get_port("weft0", 1, &port), 0);
	memcpy(to.gid, &port.gid_prefix, 8);
	memcpy(to.gid + 8, &port.port_guid, 8);
	umad_release_port(&port);
	umad_set_grh(umad, &to);
	umad_set_addr(umad, 0, 1, 0, 0);
	memcpy(mad, (uint8_t[]){1, CLASS, 1, METHOD}, 4);
	CHECK_EQ(umad_send(fd, sender, umad, MAD_BYTES, 0, 0), 0);
	umad_free(umad);
}

static void check_mads(int fd)
{
	long methods[16 / sizeof(long)] = {1 << METHOD};
	int sender = umad_register(fd, 0, 0, 0, NULL), length = MAD_BYTES;
	int server = umad_register(fd, CLASS, 1, 0, methods);
	void *umad = umad_alloc(1, umad_size() + MAD_BYTES);

	CHECK_EQ(umad_size(), 64);
	CHECK_EQ(sender, 0);
	CHECK_EQ(server, 1);
	CHECK_EQ(umad_recv(fd, umad, &length, 0), -EAGAIN);
	send_one(fd, sender);
	CHECK_EQ(umad_poll(fd, WAIT_MS), 0);
	CHECK_EQ(umad_recv(fd, umad, &length, WAIT_MS), server);
	CHECK_EQ(length, MAD_BYTES);
	CHECK_EQ(((uint8_t *)umad_get_mad(umad))[3], METHOD);
	CHECK_EQ(umad_unregister(fd, server), 0);
	CHECK_EQ(umad_unregister(fd, server), -1);
	CHECK_EQ(umad_register(fd, 0x81, 1, 0, methods), -EPERM);
	CHECK_EQ(errno, EPROTONOSUPPORT);
	umad_free(umad);
}

static void check_files(void)
{
	char issm[64];
	int fd;

	CHECK_EQ(umad_init(), 0);
	fd = umad_open_port("weft0", 1);
	if (CHECK(fd >= 0))
		check_mads(fd);
	CHECK_EQ(umad_close_port(fd), 0);
	CHECK_EQ(umad_open_port("weft0", 2), -EINVAL);
	CHECK_EQ(umad_get_issm_path("weft0", 1, issm, sizeof issm), 0);
	CHECK(!strcmp(issm, "/dev/infiniband/issm0"));
	CHECK_EQ(umad_done(), 0);
}

int main(void)
{
	check_device();
	check_port();
	check_files();
	return check_result();
}
