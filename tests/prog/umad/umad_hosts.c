// SPDX-License-Identifier: BSD-3-Clause
/*
 * A MAD from a umad file to the QP1 of another host, where nobody knows its class: the answer,
 * which says so, comes back to the file.  By IPv4 and IPv6.
 */
#include <arpa/inet.h>
#include <infiniband/umad.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/two_hosts.h"

enum { FAR = 2, CLASS = 0x30, QKEY = 0x80010000, GET = 1, GET_RESP = 0x81, UNSUPPORTED = 0x0c };
enum { MAD = 256, WAIT_MS = 20000, FIRST_IPV6 = 4, TRY_MS = 1000, TRIES = 10 };

static int open_port(void)
{
	int port = umad_open_port("weft0", 1);

	if (port < 0)
		die("umad_open_port");
	return port;
}

/* As long as it has the file open, MADs may come. */
static void live_far(int in, int out, void *arg)
{
	int port = open_port();

	(void)arg;
	t_signal(out);
	t_await(in);
	umad_close_port(port);
}

static void set_gid(ib_user_mad_t *u, int family)
{
	static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
	const struct sockaddr *to = host_addr(family, FAR, 0);

	u->addr.grh_present = 1;
	u->addr.hop_limit = 64;
	u->addr.gid_index = family == AF_INET ? 1 : FIRST_IPV6;
	if (family == AF_INET6) {
		memcpy(u->addr.gid, &((struct sockaddr_in6 *)to)->sin6_addr, 16);
		return;
	}
	memcpy(u->addr.gid, mapped, sizeof mapped);
	memcpy(u->addr.gid + 12, &((struct sockaddr_in *)to)->sin_addr, 4);
}

static void ask(int port, int agent, int family)
{
	ib_user_mad_t *u = calloc(1, umad_size() + MAD);
	uint8_t *mad = umad_get_mad(u);
	uint8_t to[16];
	int len = MAD;

	mad[0] = 1;
	mad[1] = CLASS;
	mad[2] = 1;
	mad[3] = GET;
	mad[39] = 1; /* OUI */
	umad_set_addr_net(u, 0, htonl(1), 0, htonl(QKEY));
	set_gid(u, family);
	memcpy(to, u->addr.gid, sizeof to);
	if (umad_send(port, agent, u, MAD, TRY_MS, TRIES) < 0)
		die("umad_send");
	CHECK_EQ(umad_recv(port, u, &len, WAIT_MS), agent);
	CHECK_EQ(umad_status(u), 0);
	CHECK_EQ(mad[3], GET_RESP);
	CHECK_EQ(mad[4] << 8 | mad[5], UNSUPPORTED);
	CHECK(!memcmp(to, u->addr.gid, sizeof to));
	free(u);
}

int main(void)
{
	uint8_t oui[3] = {0, 0, 1};
	struct t_child far;
	int port, agent;
	long none[4] = {0};

	t_start(60);
	two_hosts(&far, live_far);
	t_await(far.from);
	umad_init();
	port = open_port();
	agent = umad_register_oui(port, CLASS, 0, oui, none);
	if (agent < 0)
		die("umad_register_oui");
	ask(port, agent, AF_INET);
	ask(port, agent, AF_INET6);
	umad_close_port(port);
	t_signal(far.to);
	T_EQUAL(t_wait(&far), 0);
	return check_result();
}
