// SPDX-License-Identifier: BSD-3-Clause
/* Who may register for what, beside whom, and who gets the requests. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/mad_world.h"

enum { OK = 0, BAD = -EINVAL };

static const struct {
	struct mad_registration reg;
	int ret;
} rule[] = {
	{{.qpn = 1, .mgmt_class = 4}, OK},
	{{.qpn = 2, .mgmt_class = 4}, BAD},
	{{.qpn = UINT32_MAX, .mgmt_class = 4}, BAD},
	/* which class belongs to which QP */
	{{.qpn = 0, .mgmt_class = 0x01}, OK},
	{{.qpn = 0, .mgmt_class = 0x81}, OK},
	{{.qpn = 1, .mgmt_class = 0x01}, BAD},
	{{.qpn = 1, .mgmt_class = 0x81}, BAD},
	{{.qpn = 0, .mgmt_class = 0x03}, BAD},
	{{.qpn = 0, .mgmt_class = 0x00}, OK},
	{{.qpn = 1, .mgmt_class = 0x00}, OK},
	/* classes */
	{{.qpn = 1, .mgmt_class = 0x02}, OK},
	{{.qpn = 1, .mgmt_class = 79, .oui = 1}, OK},
	{{.qpn = 1, .mgmt_class = 80}, BAD},
	{{.qpn = 1, .mgmt_class = 80, .oui = 1}, BAD},
	{{.qpn = 0, .mgmt_class = 0x80}, BAD},
	{{.qpn = 1, .mgmt_class = 0x82}, BAD},
	{{.qpn = 1, .mgmt_class = 0xff}, BAD},
	/* class versions */
	{{.qpn = 1, .mgmt_class = 4, .class_version = 8}, OK},
	{{.qpn = 1, .mgmt_class = 4, .class_version = 0x82}, OK},
	{{.qpn = 1, .mgmt_class = 4, .class_version = 0x83}, BAD},
	{{.qpn = 1, .mgmt_class = 4, .class_version = 0xff}, BAD},
	{{.qpn = 1, .mgmt_class = 0, .class_version = 0xff}, OK},
	/* OUIs */
	{{.qpn = 1, .mgmt_class = 0x2f}, OK},
	{{.qpn = 1, .mgmt_class = 0x30}, BAD},
	{{.qpn = 1, .mgmt_class = 0x4f}, BAD},
	{{.qpn = 1, .mgmt_class = 0x30, .oui = 1}, OK},
	{{.qpn = 1, .mgmt_class = 0x4f, .oui = 0xffffff}, OK},
	{{.qpn = 1, .mgmt_class = 0x30, .oui = 0x1000000}, BAD},
	{{.qpn = 1, .mgmt_class = 0x04, .oui = 0x1000000}, BAD},
	{{.qpn = 1, .mgmt_class = 0x09, .oui = 0x1234}, OK},
	/* RMPP */
	{{.qpn = 1, .mgmt_class = 0x03, .rmpp_version = 1}, OK},
	{{.qpn = 1, .mgmt_class = 0x03, .rmpp_version = 2}, BAD},
	{{.qpn = 1, .mgmt_class = 0x04, .rmpp_version = 1}, BAD},
	{{.qpn = 1, .mgmt_class = 0x06, .rmpp_version = 1}, OK},
	{{.qpn = 1, .mgmt_class = 0x10, .rmpp_version = 1}, OK},
	{{.qpn = 1, .mgmt_class = 0x12, .rmpp_version = 1}, OK},
	{{.qpn = 1, .mgmt_class = 0x11, .rmpp_version = 1}, BAD},
	{{.qpn = 1, .mgmt_class = 0x30, .oui = 1, .rmpp_version = 1}, OK},
	{{.qpn = 1, .mgmt_class = 0x4f, .oui = 1, .rmpp_version = 1}, OK},
	{{.qpn = 0, .mgmt_class = 0x01, .rmpp_version = 1}, BAD},
	{{.qpn = 1, .mgmt_class = 0x00, .rmpp_version = 1}, OK},
	{{.qpn = 1, .mgmt_class = 0x00, .rmpp_version = 2}, BAD},
	/* its own segments */
	{{.qpn = 1, .mgmt_class = 0x03, .rmpp_version = 1, .user_rmpp = true}, OK},
	{{.qpn = 1, .mgmt_class = 0x03, .rmpp_version = 0, .user_rmpp = true}, OK},
	{{.qpn = 1, .mgmt_class = 0x00, .rmpp_version = 1, .user_rmpp = true}, BAD},
};

static void rules(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof rule / sizeof *rule; i++) {
		struct mad_agent a = {.reg = rule[i].reg};
		const char *why = NULL;

		begin();
		assert_int_equal(mad_registration_check(&a.reg, &why), rule[i].ret);
		assert_true(!why == !rule[i].ret);
		assert_int_equal(mad_registration_check(&a.reg, NULL), rule[i].ret);
		assert_int_equal(mad_register(&w.port, &a), rule[i].ret);
		end();
	}
}

static void without_qp0(void **state)
{
	struct mad_agent sm = agent_of(0x01, 1, MAD_GET), dr = agent_of(0x81, 1, MAD_GET);
	struct mad_agent sender = agent_of(0, 0, 0), gs = agent_of(4, 1, MAD_GET);

	(void)state;
	begin();
	w.port.has_qp0 = false;
	assert_int_equal(sender.reg.qpn, 1);
	sender.reg.qpn = 0;
	assert_int_equal(mad_register(&w.port, &sm), -EPROTONOSUPPORT);
	assert_int_equal(mad_register(&w.port, &dr), -EPROTONOSUPPORT);
	assert_int_equal(mad_register(&w.port, &sender), -EPROTONOSUPPORT);
	gs.reg.qpn = 0; /* what is wrong anyway is said first */
	assert_int_equal(mad_register(&w.port, &gs), -EINVAL);
	gs.reg.qpn = 1;
	assert_int_equal(mad_register(&w.port, &gs), 0);
	end();
}

/* Two agents: may the second register beside the first? */
static void conflicts(void **state)
{
	static const struct {
		struct mad_registration first, second;
		int ret;
	} c[] = {
		{{.mgmt_class = 4, .methods = {2}}, {.mgmt_class = 4, .methods = {2}}, BAD},
		{{.mgmt_class = 4, .methods = {2}}, {.mgmt_class = 4, .methods = {4}}, OK},
		{{.mgmt_class = 4, .methods = {6}}, {.mgmt_class = 4, .methods = {12}}, BAD},
		{{.mgmt_class = 4, .methods = {0, 1ull << 63}},
			{.mgmt_class = 4, .methods = {0, 1ull << 63}}, BAD},
		{{.mgmt_class = 4, .methods = {2}}, {.mgmt_class = 4, .methods = {0, 2}}, OK},
		{{.mgmt_class = 4, .methods = {2}}, {.mgmt_class = 4}, OK},
		{{.mgmt_class = 4}, {.mgmt_class = 4}, OK},
		{{.mgmt_class = 4, .methods = {2}}, {.mgmt_class = 5, .methods = {2}}, OK},
		{{.mgmt_class = 4, .methods = {2}},
			{.mgmt_class = 4, .class_version = 1, .methods = {2}}, OK},
		/* of other classes the OUI says nothing */
		{{.mgmt_class = 4, .oui = 1, .methods = {2}},
			{.mgmt_class = 4, .oui = 2, .methods = {2}}, BAD},
		{{.mgmt_class = 0x30, .oui = 1, .methods = {2}},
			{.mgmt_class = 0x30, .oui = 1, .methods = {2}}, BAD},
		{{.mgmt_class = 0x30, .oui = 1, .methods = {2}},
			{.mgmt_class = 0x30, .oui = 2, .methods = {2}}, OK},
		{{.mgmt_class = 0x30, .oui = 1, .methods = {2}},
			{.mgmt_class = 0x31, .oui = 1, .methods = {2}}, OK},
		{{.mgmt_class = 0x30, .oui = 1, .methods = {2}},
			{.mgmt_class = 0x30, .class_version = 1, .oui = 1, .methods = {2}}, OK},
		{{.mgmt_class = 0x01, .methods = {2}}, {.mgmt_class = 0x81, .methods = {2}}, OK},
		{{.mgmt_class = 0x81, .methods = {2}}, {.mgmt_class = 0x81, .methods = {2}}, BAD},
		/* who only sends asks for nothing */
		{{.methods = {2}}, {.methods = {2}}, OK},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof c / sizeof *c; i++) {
		struct mad_agent a = {.reg = c[i].first}, b = {.reg = c[i].second};

		begin();
		a.reg.qpn = mad_class_qp(a.reg.mgmt_class);
		b.reg.qpn = mad_class_qp(b.reg.mgmt_class);
		assert_int_equal(mad_register(&w.port, &a), 0);
		assert_int_equal(mad_register(&w.port, &b), c[i].ret);
		if (c[i].ret) { /* the first goes, and leaves room */
			mad_unregister(&a);
			assert_int_equal(mad_register(&w.port, &b), 0);
		}
		end();
	}
}

static void eight_ouis(void **state)
{
	struct mad_agent a[MAD_OUIS_MAX + 2];

	(void)state;
	begin();
	for (unsigned i = 0; i < MAD_OUIS_MAX + 2; i++) {
		a[i] = agent_of(0x32, 1, MAD_GET);
		a[i].reg.oui = 100 + i;
		assert_int_equal(mad_register(&w.port, &a[i]), i < MAD_OUIS_MAX ? 0 : -ENOMEM);
	}
	a[8].reg.class_version = 2; /* counted by itself */
	assert_int_equal(mad_register(&w.port, &a[8]), 0);
	a[9].reg.oui = 100; /* the same OUI takes no place */
	a[9].reg.methods[0] = 1 << MAD_SET;
	assert_int_equal(mad_register(&w.port, &a[9]), 0);
	mad_unregister(&a[9]);
	mad_unregister(&a[3]);
	a[9].reg.oui = 200;
	assert_int_equal(mad_register(&w.port, &a[9]), 0);
	end();
}

enum { PERF, PERF_NEWER, PERF_SET, OUI_1, OUI_2, OUI_1_NEWER, LID_ROUTED, DIRECTED, AGENTS };
enum { NOBODY = AGENTS };

/* Each request goes to one agent, or to nobody. */
static const struct {
	uint8_t mgmt_class, version, method;
	uint8_t oui[3];
	unsigned who;
} request[] = {
	{4, 1, MAD_GET, {0}, PERF},
	{4, 1, MAD_GET, {9, 9, 9}, PERF},
	{4, 2, MAD_GET, {0}, PERF_NEWER},
	{4, 3, MAD_GET, {0}, NOBODY},
	{4, 0xff, MAD_GET, {0}, NOBODY},
	{4, 1, MAD_SET, {0}, PERF_SET},
	{4, 1, MAD_REPORT, {0}, NOBODY},
	{4, 1, 0x7f, {0}, NOBODY},
	{5, 1, MAD_GET, {0}, NOBODY},
	{0, 1, MAD_GET, {0}, NOBODY},
	{0x50, 1, MAD_GET, {0}, NOBODY},
	{0xff, 1, MAD_GET, {0}, NOBODY},
	{0x30, 1, MAD_GET, {0, 0x14, 0x05}, OUI_1},
	{0x30, 1, MAD_GET, {0xff, 0, 0x01}, OUI_2},
	{0x30, 2, MAD_GET, {0, 0x14, 0x05}, OUI_1_NEWER},
	{0x30, 1, MAD_GET, {0, 0x14, 0x06}, NOBODY},
	{0x30, 1, MAD_GET, {0}, NOBODY},
	{0x31, 1, MAD_GET, {0, 0x14, 0x05}, NOBODY},
	{0x01, 1, MAD_GET, {0}, LID_ROUTED},
	{0x81, 1, MAD_GET, {0}, DIRECTED},
};

static void who_gets_it(void **state)
{
	struct mad_agent a[AGENTS] = {
		[PERF] = agent_of(4, 1, MAD_GET),
		[PERF_NEWER] = agent_of(4, 2, MAD_GET),
		[PERF_SET] = agent_of(4, 1, MAD_SET),
		[OUI_1] = agent_of(0x30, 1, MAD_GET),
		[OUI_2] = agent_of(0x30, 1, MAD_GET),
		[OUI_1_NEWER] = agent_of(0x30, 2, MAD_GET),
		[LID_ROUTED] = agent_of(0x01, 1, MAD_GET),
		[DIRECTED] = agent_of(0x81, 1, MAD_GET),
	};

	(void)state;
	begin();
	a[OUI_1].reg.oui = a[OUI_1_NEWER].reg.oui = 0x001405;
	a[OUI_2].reg.oui = 0xff0001;
	for (unsigned i = 0; i < AGENTS; i++)
		assert_int_equal(mad_register(&w.port, &a[i]), 0);
	for (unsigned i = 0; i < sizeof request / sizeof *request; i++) {
		struct mad_addr from = neighbour;
		uint8_t mad[MAD_SIZE];

		w.to = NULL;
		make(mad, request[i].mgmt_class, request[i].version, request[i].method, i);
		memcpy(mad + 37, request[i].oui, 3);
		from.qp = mad_class_qp(request[i].mgmt_class);
		mad_receive(&w.port, &from, mad);
		assert_ptr_equal(w.to, request[i].who == NOBODY ? NULL : &a[request[i].who]);
	}
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules),
		cmocka_unit_test(without_qp0),
		cmocka_unit_test(conflicts),
		cmocka_unit_test(eight_ouis),
		cmocka_unit_test(who_gets_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
