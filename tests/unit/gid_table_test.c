// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/gid_table.h"

static const uint64_t guid_host = 0x0211223344556677ull;

static struct gid_addr addr(const char *text, uint32_t ifindex)
{
	struct gid_addr a = {.ifindex = ifindex, .mtu = 1500, .loopback = ifindex == 1};
	uint8_t v4[4];

	strcpy(a.ifname, ifindex == 1 ? "lo" : ifindex == 2 ? "eth0" : "eth1");
	if (inet_pton(AF_INET, text, v4) == 1)
		gid_from_ipv4(a.raw, v4);
	else
		assert_int_equal(inet_pton(AF_INET6, text, a.raw), 1);
	return a;
}

static void expect(const struct fabric_port *port, uint32_t i, const char *text)
{
	char got[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, port->gid[i].raw, got, sizeof got);
	assert_string_equal(got, text);
	assert_int_equal(port->gid[i].type, strcmp(text, "::") ? GID_TYPE_ROCE_V2 : 0);
}

static struct fabric_port *new_port(void)
{
	struct fabric_port *port = calloc(1, sizeof *port);

	assert_non_null(port);
	return port;
}

static size_t update(struct fabric_port *port, const struct gid_addr *a, size_t n)
{
	return gid_table_update(port, htobe64(guid_host), a, n);
}

static void nothing_known(void **state)
{
	struct fabric_port *port = new_port();

	(void)state;
	assert_int_equal(update(port, NULL, 0), 0);
	assert_int_equal(port->n_gids, 3);
	expect(port, 0, "fe80::211:2233:4455:6677");
	expect(port, 1, "::ffff:127.0.0.1");
	expect(port, 2, "::1");
	free(port);
}

static void usual_host(void **state)
{
	const struct gid_addr a[] = {addr("127.0.0.1", 1), addr("10.0.0.5", 2), addr("10.0.1.5", 3),
		addr("::1", 1), addr("fe80::1", 3), addr("10.0.0.5", 3)};
	struct fabric_port *port = new_port();

	(void)state;
	assert_int_equal(update(port, a, 6), 0);
	assert_int_equal(port->n_gids, 6);
	expect(port, 1, "::ffff:10.0.0.5");
	expect(port, 2, "::ffff:127.0.0.1");
	expect(port, 3, "::1");
	expect(port, 4, "::ffff:10.0.1.5");
	expect(port, 5, "fe80::1");
	assert_string_equal(port->gid[0].ifname, "eth0");
	assert_string_equal(port->gid[1].ifname, "eth0");
	assert_int_equal(port->gid[4].ifindex, 3);
	free(port);
}

/* GID 0 is the link-local address of the link that has GID 1, for as long as there is one. */
static void link_local(void **state)
{
	const struct gid_addr v4[] = {addr("10.0.0.5", 2), addr("fe80::1", 3)};
	const struct gid_addr both[] = {
		addr("fe80::1", 3), addr("10.0.0.5", 2), addr("fe80::2", 2)};
	const struct gid_addr no_link[] = {addr("fe80::3", 2)};
	struct fabric_port *port = new_port();

	(void)state;
	update(port, v4, 2);
	expect(port, 0, "fe80::211:2233:4455:6677");
	expect(port, 4, "fe80::1");
	update(port, both, 3);
	expect(port, 0, "fe80::2");
	assert_int_equal(port->gid[0].ifindex, 2);
	expect(port, 4, "fe80::1");
	assert_int_equal(port->n_gids, 5); /* fe80::2 is there once */
	update(port, v4, 2);
	expect(port, 0, "fe80::211:2233:4455:6677");
	update(port, no_link, 1);
	expect(port, 0, "fe80::211:2233:4455:6677");
	free(port);
}

static void finds_the_link(void **state)
{
	const struct gid_addr a[] = {addr("127.0.0.1", 1), addr("10.0.0.5", 2)};

	(void)state;
	assert_ptr_equal(gid_main_ipv4(a, 2), &a[1]);
	assert_null(gid_main_ipv4(a, 1));
}

static void indices_are_stable(void **state)
{
	const struct gid_addr first[] = {
		addr("10.0.0.5", 2), addr("10.0.0.6", 2), addr("10.0.0.7", 2)};
	const struct gid_addr gone[] = {addr("10.0.0.7", 2)};
	const struct gid_addr v6[] = {addr("fd00::9", 2), addr("10.0.0.7", 2)};
	const struct gid_addr back[] = {
		addr("fd00::9", 2), addr("10.0.0.7", 2), addr("10.0.0.8", 2)};
	struct fabric_port *port = new_port();

	(void)state;
	update(port, first, 3);
	expect(port, 4, "::ffff:10.0.0.6");
	expect(port, 5, "::ffff:10.0.0.7");
	update(port, gone, 1);
	expect(port, 1, "::");
	expect(port, 4, "::");
	expect(port, 5, "::ffff:10.0.0.7");
	assert_int_equal(port->n_gids, 6);
	update(port, v6, 2);
	expect(port, 1, "::"); /* never IPv6 */
	expect(port, 4, "fd00::9");
	update(port, back, 3);
	expect(port, 1, "::ffff:10.0.0.8");
	update(port, NULL, 0);
	assert_int_equal(port->n_gids, 4);
	expect(port, 2, "::ffff:127.0.0.1");
	expect(port, 3, "::1");
	free(port);
}

static void address_moves(void **state)
{
	const struct gid_addr on2[] = {addr("10.0.0.5", 2), addr("10.0.0.6", 2)};
	const struct gid_addr on3[] = {addr("10.0.0.6", 3), addr("10.0.0.5", 2)};
	struct fabric_port *port = new_port();

	(void)state;
	update(port, on2, 2);
	update(port, on3, 2);
	expect(port, 4, "::ffff:10.0.0.6");
	assert_int_equal(port->gid[4].ifindex, 3);
	assert_string_equal(port->gid[4].ifname, "eth1");
	free(port);
}

static void table_is_full(void **state)
{
	static struct gid_addr many[300];
	struct fabric_port *port = new_port();

	(void)state;
	for (int i = 0; i < 300; i++) {
		many[i] = addr("10.0.0.0", 2);
		many[i].raw[14] = i >> 8;
		many[i].raw[15] = i;
	}
	assert_int_equal(update(port, many, 300), 300 - (FABRIC_MAX_GIDS - 3));
	assert_int_equal(port->n_gids, FABRIC_MAX_GIDS);
	free(port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_known),
		cmocka_unit_test(usual_host),
		cmocka_unit_test(link_local),
		cmocka_unit_test(finds_the_link),
		cmocka_unit_test(indices_are_stable),
		cmocka_unit_test(address_moves),
		cmocka_unit_test(table_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
