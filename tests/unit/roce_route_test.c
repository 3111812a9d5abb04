// SPDX-License-Identifier: BSD-3-Clause
/*
 * Routes to other machines, in a network namespace of its own:
 *
 *   v0  10.9.0.1/24, 10.9.0.7/24, fd77::1/64, MTU 1500  ---  v1, which has no address
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "roce/port/route.h"

enum { SKIP = 77 };

static const char world[] = "set -e\n"
			    "ip link set lo up\n"
			    "ip link add v0 type veth peer name v1\n"
			    "ip addr add 10.9.0.1/24 dev v0\n"
			    "ip addr add 10.9.0.7/24 dev v0\n"
			    "ip addr add fd77::1/64 dev v0 nodad\n"
			    "ip link set v0 up\n"
			    "ip link set v1 up\n"
			    "ip route add 10.10.0.0/16 via 10.9.0.9 mtu 1400\n"
			    "ip route add 10.12.0.0/16 via inet6 fd77::9 dev v0\n"
			    "ip route add unreachable 10.13.0.0/16\n"
			    "ip route add blackhole 10.14.0.0/16\n"
			    "ip route add prohibit 10.15.0.0/16\n"
			    "ip -6 route add fd78::/64 via fd77::9 mtu 1300\n"
			    "ip -6 route add unreachable fd79::/64\n"
			    "ip route add 239.0.0.0/8 dev v0\n"
			    "ip neigh add 10.9.0.20 lladdr 02:00:00:00:00:20 dev v0 nud permanent\n"
			    "ip neigh add 10.9.0.21 dev v0 nud failed\n"
			    "ip neigh add fd77::9 lladdr 02:00:00:00:00:09 dev v0 nud permanent\n"
			    /* v1 gets its address once the kernel has seen that the link is up */
			    "until ip -6 route get fe80::5 oif v1 >/dev/null 2>&1; do\n"
			    "	sleep 0.01\n"
			    "done\n";

static void address(const char *text, uint8_t gid[16])
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	memset(gid, 0, 16);
	if (!text)
		return;
	if (inet_pton(AF_INET6, text, gid) == 1)
		return;
	memcpy(gid, prefix, sizeof prefix);
	assert_int_equal(inet_pton(AF_INET, text, gid + 12), 1);
}

static int find(const char *dst, const char *src, struct route *r)
{
	struct route_want w = {0};

	address(dst, w.dst);
	address(src, w.src);
	return route_find(&w, r);
}

static void is_at(const uint8_t got[16], const char *want)
{
	uint8_t gid[16];

	address(want, gid);
	assert_memory_equal(got, gid, sizeof gid);
}

static void on_the_link(void **state)
{
	struct route r;

	(void)state;
	assert_int_equal(find("10.9.0.2", NULL, &r), 0);
	is_at(r.src, "10.9.0.1");
	is_at(r.next, "10.9.0.2");
	assert_int_equal(r.ifindex, if_nametoindex("v0"));
	assert_int_equal(r.mtu, 1500);
	assert_false(r.has_gateway);
	assert_false(r.local);
	assert_false(r.next_known);
	assert_int_equal(find("fd77::2", NULL, &r), 0);
	is_at(r.src, "fd77::1");
	is_at(r.next, "fd77::2");
	assert_int_equal(r.mtu, 1500);
}

static void behind_gateways(void **state)
{
	struct route r;

	(void)state;
	assert_int_equal(find("10.10.3.4", NULL, &r), 0);
	assert_true(r.has_gateway);
	is_at(r.next, "10.9.0.9");
	is_at(r.src, "10.9.0.1");
	assert_int_equal(r.mtu, 1400);
	assert_int_equal(find("fd78::1", NULL, &r), 0);
	is_at(r.next, "fd77::9");
	assert_int_equal(r.mtu, 1300);
	assert_true(r.next_known);
	/* a gateway of the other family */
	assert_int_equal(find("10.12.3.4", NULL, &r), 0);
	is_at(r.next, "fd77::9");
	assert_true(r.next_known);
}

static void nowhere(void **state)
{
	static const char *const dsts[] = {
		"10.11.0.1", "10.13.0.1", "10.14.0.1", "10.15.0.1", "fd79::1", "fd80::1"};
	struct route r;

	(void)state;
	for (size_t i = 0; i < sizeof dsts / sizeof *dsts; i++) {
		assert_int_equal(find(dsts[i], NULL, &r), -EHOSTUNREACH);
		assert_int_not_equal(r.refusal, 0);
	}
}

static void to_ourselves(void **state)
{
	static const char *const dsts[] = {"127.0.0.1", "10.9.0.1", "::1", "fd77::1"};
	struct route r;

	(void)state;
	for (size_t i = 0; i < sizeof dsts / sizeof *dsts; i++) {
		assert_int_equal(find(dsts[i], NULL, &r), 0);
		assert_true(r.local);
		is_at(r.src, dsts[i]);
		assert_true(r.next_known);
	}
}

static void from_where_it_was_said(void **state)
{
	struct route r;

	(void)state;
	assert_int_equal(find("10.9.0.2", "10.9.0.7", &r), 0);
	is_at(r.src, "10.9.0.7");
	assert_int_equal(find("10.9.0.2", "10.77.0.7", &r), -EHOSTUNREACH);
}

static void by_an_interface(void **state)
{
	struct route_want w = {.ifindex = if_nametoindex("v1")};
	struct route r;

	(void)state;
	address("fe80::5", w.dst);
	assert_int_equal(route_find(&w, &r), 0);
	assert_int_equal(r.ifindex, w.ifindex);
	w.ifindex = 12345;
	assert_int_equal(route_find(&w, &r), -EHOSTUNREACH);
}

static void neighbours(void **state)
{
	bool known;
	struct route r;

	(void)state;
	assert_int_equal(find("10.9.0.20", NULL, &r), 0);
	assert_true(r.next_known);
	assert_int_equal(find("10.9.0.21", NULL, &r), 0);
	assert_false(r.next_known);
	assert_int_equal(system("ip neigh replace 10.9.0.21 lladdr 02:00:00:00:00:21 dev v0"), 0);
	assert_int_equal(route_look_at_neighbour(&r, &known), 0);
	assert_true(known);
}

static void to_a_group(void **state)
{
	struct route r;

	(void)state;
	assert_int_equal(find("239.1.2.3", NULL, &r), 0);
	assert_int_equal(r.ifindex, if_nametoindex("v0"));
	is_at(r.src, "10.9.0.1");
	assert_true(r.next_known);
}

static void leaves_no_descriptor(void **state)
{
	int before = dup(0), after;
	struct route r;

	(void)state;
	close(before);
	(void)find("10.9.0.2", NULL, &r);
	(void)find("10.11.0.1", NULL, &r);
	after = dup(0);
	assert_int_equal(after, before);
	close(after);
}

static void path_mtus(void **state)
{
	static const struct {
		uint32_t link;
		int code;
	} cases[] = {{0, 5}, {68, 1}, {336, 1}, {591, 1}, {592, 2}, {1103, 2}, {1104, 3}, {1400, 3},
		{1500, 3}, {2127, 3}, {2128, 4}, {4175, 4}, {4176, 5}, {9000, 5}, {65536, 5},
		{UINT32_MAX, 5}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(route_path_mtu(cases[i].link), cases[i].code);
}

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	if (!f)
		return;
	(void)fputs(text, f);
	fclose(f);
}

/* False: there is no network namespace with a veth to be had. */
static bool make_world(void)
{
	char map[64];
	uid_t uid = geteuid();

	if (uid && unshare(CLONE_NEWUSER))
		return false;
	snprintf(map, sizeof map, "0 %u 1\n", uid);
	if (uid) {
		write_text("/proc/self/setgroups", "deny");
		write_text("/proc/self/uid_map", map);
	}
	return !unshare(CLONE_NEWNET) && system(world) == 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(path_mtus),
		cmocka_unit_test(on_the_link),
		cmocka_unit_test(behind_gateways),
		cmocka_unit_test(nowhere),
		cmocka_unit_test(to_ourselves),
		cmocka_unit_test(from_where_it_was_said),
		cmocka_unit_test(by_an_interface),
		cmocka_unit_test(neighbours),
		cmocka_unit_test(to_a_group),
		cmocka_unit_test(leaves_no_descriptor),
	};

	if (!make_world()) {
		puts("no network namespace with a veth and routes to be had");
		return SKIP;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
