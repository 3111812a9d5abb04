// SPDX-License-Identifier: BSD-3-Clause
/* UDP port 4791: who has it, and which packets come to whom; in a network namespace of its own. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/prog/rdv/help.h"
#include "tests/prog/rdv/wire_kid.h"

enum { WAIT_MS = 20000, QPN_BLOCK = 256 };

static const char *const addrs[] = {"127.0.0.1", "198.51.100.1", "2001:db8:77::1"};

/* A kid that has joined and has a block of queue pairs, which is steered to it. */
static struct kid joined(long *index, long *qpn)
{
	struct kid k = kid_start();

	*index = kid_do(&k, DO_JOIN, 0, 0);
	CHECK(*index > 0);
	*qpn = kid_do(&k, DO_LEASE, 0, 0);
	CHECK(*qpn > 0);
	return k;
}

/* Sends until it comes, which the first may not: steering is made anew ten times a second. */
static void comes(struct kid *k, const char *addr, long qpn, long way)
{
	double end = seconds() + WAIT_MS / 1000;
	long got;

	do {
		wire_send_to(addr, qpn);
		got = kid_do(k, DO_PACKET, qpn, 100);
	} while (got != way && seconds() < end);
	CHECK_EQ(got, way);
}

static int wire_join(void)
{
	long index_a, index_b, qpn_a, qpn_b;
	struct kid a = joined(&index_a, &qpn_a), b = joined(&index_b, &qpn_b);

	CHECK_EQ(index_a, 1);
	CHECK_EQ(index_b, 2);
	CHECK_EQ(kid_do(&a, DO_JOIN, 0, 0), index_a);
	for (int i = 0; i < 3; i++) {
		long way = i < 2 ? CAME_IPV4 : CAME_IPV6;

		comes(&a, addrs[i], qpn_a, way);
		comes(&a, addrs[i], qpn_a + QPN_BLOCK - 1, way);
		comes(&b, addrs[i], qpn_b, way);
	}
	CHECK_EQ(status_of(NULL, "wire.processes"), 2);
	CHECK_EQ(status_of(NULL, "wire.sockets"), 6);
	kid_end(&a, 0);
	kid_end(&b, SIGKILL);
	CHECK(status_becomes(NULL, "wire.processes", 0));
	return 0;
}

const struct test_case wire_cases[] = {
	{"wire_join", wire_join},
	{0},
};
