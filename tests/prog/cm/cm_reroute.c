// SPDX-License-Identifier: BSD-3-Clause
/*
 * A connection goes on where the routes lead: both hosts get a second link, and their routes to
 * each other change over to it while rsockets talk.
 */
#include <rdma/rsocket.h>
#include <stdlib.h>

#include "tests/lib/check.h"
#include "tests/lib/cm_ends.h"
#include "tests/lib/two_hosts.h"

enum { NEAR = 1, FAR = 2, PORT = 4711, ROUNDS = 20 };

static void route_by(const char *dev, int to)
{
	host_do("ip link set %s up", dev);
	host_do("ip route replace 198.51.100.%d/32 dev %s", to, dev);
}

static void live_far(int in, int out, void *arg)
{
	int l = rsocket(AF_INET, SOCK_STREAM, 0), s;
	char c;

	(void)arg;
	CHECK_EQ(rbind(l, host_addr(AF_INET, FAR, PORT), sizeof(struct sockaddr_in)), 0);
	CHECK_EQ(rlisten(l, 1), 0);
	t_signal(out);
	s = raccept(l, NULL, NULL);
	for (int i = 0; i < ROUNDS; i++)
		CHECK(rrecv(s, &c, 1, 0) == 1 && rsend(s, &c, 1, 0) == 1);
	t_await(in);
	route_by("v3", NEAR);
	t_signal(out);
	for (int i = 0; i < ROUNDS; i++)
		CHECK(rrecv(s, &c, 1, 0) == 1 && rsend(s, &c, 1, 0) == 1);
	t_await(in);
	rclose(s);
	rclose(l);
	exit(check_result());
}

static void talk(int s)
{
	for (char c = 0, back; c < ROUNDS; c++) {
		CHECK_EQ(rsend(s, &c, 1, 0), 1);
		CHECK_EQ(rrecv(s, &back, 1, 0), 1);
		CHECK_EQ(back, c);
	}
}

int main(void)
{
	struct t_child far;
	int s;

	t_start(60);
	two_hosts(&far, live_far);
	t_await(far.from);
	s = rsocket(AF_INET, SOCK_STREAM, 0);
	CHECK_EQ(rconnect(s, host_addr(AF_INET, FAR, PORT), sizeof(struct sockaddr_in)), 0);
	talk(s);
	host_do("ip link add v2 type veth peer name v3 netns %d", (int)far.pid);
	route_by("v2", FAR);
	t_signal(far.to);
	t_await(far.from);
	talk(s);
	host_do("test $(awk '$1 == \"v2:\" { print $3 }' /proc/net/dev) -ge %d", ROUNDS);
	t_signal(far.to);
	rclose(s);
	T_EQUAL(t_wait(&far), 0);
	return check_result();
}
