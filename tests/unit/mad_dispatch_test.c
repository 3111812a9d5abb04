// SPDX-License-Identifier: BSD-3-Clause
/* What comes: dropped by which name, answered by the port itself, or an agent's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/mad_world.h"
#include "wire/rmpp.h"

static void check_drops(enum mad_drop one)
{
	for (int i = 0; i < MAD_DROP_COUNT; i++)
		assert_int_equal(w.port.drops[i], i == (int)one);
}

static void validation(void **state)
{
	static const struct {
		uint8_t base_version, mgmt_class, method, qp;
		uint16_t attr;
		enum mad_drop why;
		bool no_qp0;
	} c[] = {
		{1, 4, MAD_GET, 1, 1, MAD_DROP_COUNT},
		{0, 4, MAD_GET, 1, 1, MAD_DROP_VERSION},
		{2, 4, MAD_GET, 1, 1, MAD_DROP_VERSION},
		{0x80, 4, MAD_GET_RESP, 1, 1, MAD_DROP_VERSION},
		{1, 4, MAD_GET, 0, 1, MAD_DROP_QP},
		{1, 1, MAD_GET, 1, 1, MAD_DROP_QP},
		{1, 0x81, MAD_GET, 1, 1, MAD_DROP_QP},
		{1, 0x81, MAD_GET_RESP, 1, 1, MAD_DROP_QP},
		{1, 1, MAD_GET, 0, 1, MAD_DROP_COUNT},
		{1, 1, MAD_GET, 0, 1, MAD_DROP_QP, true},
		{1, 4, MAD_GET, 1, 1, MAD_DROP_COUNT, true},
		{1, 0x81, MAD_GET, 0, 1, MAD_DROP_COUNT},
		{1, MAD_CLASS_CM, MAD_SEND, 1, 0x10, MAD_DROP_COUNT},
		{1, MAD_CLASS_CM, MAD_GET, 1, 0x10, MAD_DROP_CM_METHOD},
		{1, MAD_CLASS_CM, MAD_GET_RESP, 1, 0x10, MAD_DROP_CM_METHOD},
		{1, MAD_CLASS_CM, MAD_GET, 1, MAD_ATTR_CLASS_PORT_INFO, MAD_DROP_COUNT},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof c / sizeof *c; i++) {
		struct mad_agent a = agent_of(c[i].mgmt_class, 1, c[i].method & ~MAD_RESPONSE);
		const struct mad_hdr h = {.base_version = c[i].base_version,
			.mgmt_class = c[i].mgmt_class,
			.class_version = 1,
			.method = c[i].method,
			.attr = c[i].attr};
		struct mad_addr from = neighbour;
		uint8_t mad[MAD_SIZE] = {0};

		begin();
		from.qp = c[i].qp;
		assert_int_equal(mad_register(&w.port, &a), 0);
		wire_pack(&mad_hdr_format, &h, mad);
		w.port.has_qp0 = !c[i].no_qp0;
		mad_receive(&w.port, &from, mad);
		assert_int_equal(w.received, c[i].why == MAD_DROP_COUNT);
		assert_int_equal(w.transmitted, 0);
		check_drops(c[i].why);
		end();
	}
}

/* Nobody is registered. */
static void refusals(void **state)
{
	static const struct {
		uint8_t mgmt_class, method;
		uint16_t status; /* 0: no answer */
	} c[] = {
		{4, MAD_GET, 0x000c},
		{4, MAD_SET, 0x000c},
		{1, MAD_GET, 0x000c},
		{0x81, MAD_GET, 0x800c},
		{0x81, MAD_SET, 0x800c},
		{0x30, MAD_GET, 0x000c},
		{0xff, MAD_GET, 0x000c},
		{4, MAD_SEND, 0},
		{4, MAD_TRAP, 0},
		{4, MAD_REPORT, 0},
		{0x81, MAD_TRAP, 0},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof c / sizeof *c; i++) {
		struct mad_addr from = neighbour;
		uint8_t mad[MAD_SIZE];
		struct mad_hdr h;

		begin();
		from.qp = from.qpn = mad_class_qp(c[i].mgmt_class);
		from.pkey_index = 3;
		make(mad, c[i].mgmt_class, 1, c[i].method, 77);
		memset(mad + 24, 0xab, MAD_SIZE - 24);
		mad_receive(&w.port, &from, mad);
		check_drops(MAD_DROP_NO_AGENT);
		assert_int_equal(w.transmitted, !!c[i].status);
		if (c[i].status) {
			wire_unpack(&mad_hdr_format, w.last, &h);
			assert_int_equal(h.method, MAD_GET_RESP);
			assert_int_equal(h.status, c[i].status);
			assert_int_equal(h.tid, 77);
			assert_memory_equal(w.last + 24, mad + 24, MAD_SIZE - 24);
			assert_memory_equal(&w.last_to, &from, sizeof from);
		}
		end();
	}
}

enum side { RAW, LAYER };

/* A response that no request awaits, or a segment: who gets it? */
static void segments_of_its_own(void **state)
{
	static const struct {
		enum side rmpp;
		uint8_t rmpp_version, mgmt_class, method, flags;
		bool comes;
		enum mad_drop why;
	} c[] = {
		{RAW, 1, 3, 0x92, RMPP_ACTIVE, true, MAD_DROP_COUNT},
		{RAW, 1, 3, 0x92, RMPP_ACTIVE | RMPP_LAST, true, MAD_DROP_COUNT},
		{RAW, 1, 3, 0x92, 0, false, MAD_DROP_NO_REQUEST},
		{RAW, 0, 3, 0x92, RMPP_ACTIVE, true, MAD_DROP_COUNT},
		{RAW, 0, 0x30, 0x92, RMPP_ACTIVE, true, MAD_DROP_COUNT},
		{RAW, 0, 4, 0x92, RMPP_ACTIVE, false, MAD_DROP_NO_REQUEST},
		{RAW, 1, 3, 0x12, RMPP_ACTIVE, true, MAD_DROP_COUNT},
		{LAYER, 1, 3, 0x92, RMPP_ACTIVE, false, MAD_DROP_RMPP},
		{LAYER, 1, 3, 0x92, 0, false, MAD_DROP_NO_REQUEST},
		{LAYER, 1, 3, 0x12, 0, true, MAD_DROP_COUNT},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof c / sizeof *c; i++) {
		struct mad_agent a = agent_of(c[i].mgmt_class, 2, 0x12);
		struct rmpp_hdr rmpp = {.version = 1, .type = RMPP_DATA, .flags = c[i].flags};
		uint8_t mad[MAD_SIZE];

		begin();
		a.reg.rmpp_version = c[i].rmpp_version;
		a.reg.user_rmpp = c[i].rmpp == RAW;
		a.reg.oui = 1;
		rmpp.segment = 7;
		assert_int_equal(mad_register(&w.port, &a), 0);
		make(mad, c[i].mgmt_class, 2, c[i].method, mad_tid(&a, 1));
		wire_pack(&rmpp_hdr_format, &rmpp, mad);
		mad[MAD_OUI_AT + 2] = 1;
		mad_receive(&w.port, &neighbour, mad);
		assert_int_equal(w.received, c[i].comes);
		if (c[i].comes)
			assert_memory_equal(w.came, mad, MAD_SIZE);
		check_drops(c[i].why);
		end();
	}
}

/* The first segment answers the request, the others come by themselves, and none is a duplicate. */
static void user_rmpp(void **state)
{
	struct mad_agent a = agent_of(MAD_CLASS_SA, 2, MAD_REPORT);
	struct rmpp_hdr rmpp = {.version = 1, .type = RMPP_DATA, .flags = RMPP_ACTIVE};
	uint8_t mad[MAD_SIZE], long_one[600] = {1, 3, 2, 0x12};
	struct mad_send *s;

	(void)state;
	begin();
	a.reg.rmpp_version = 1;
	a.reg.user_rmpp = true;
	assert_int_equal(mad_register(&w.port, &a), 0);
	make(mad, MAD_CLASS_SA, 2, 0x12, mad_tid(&a, 1));
	assert_int_equal(mad_send(&a, &neighbour, mad, 100, 0, true, &w, &s), 0);
	assert_int_equal(mad_check_duplicate(&a, &neighbour, mad), -EINVAL);
	rmpp.segment = 2;
	wire_pack(&rmpp_hdr_format, &rmpp, mad);
	assert_int_equal(mad_check_duplicate(&a, &neighbour, mad), 0);
	assert_int_equal(mad_send(&a, &neighbour, mad, 0, 0, true, &w, &s), 0);
	assert_memory_equal(w.last, mad, MAD_SIZE); /* as it was */
	for (int i = 1; i <= 3; i++) {
		make(mad, MAD_CLASS_SA, 2, 0x92, mad_tid(&a, 1));
		rmpp.segment = i;
		wire_pack(&rmpp_hdr_format, &rmpp, mad);
		mad_receive(&w.port, &neighbour, mad);
		assert_int_equal(w.done, 1);
		assert_int_equal(w.received, i - 1);
	}
	assert_int_equal(w.transmitted, 2); /* no ACK is the layer's */
	assert_int_equal(
		mad_send_long(&a, &neighbour, long_one, 600, 100, 0, true, &w, &s), -EINVAL);
	make(mad, MAD_CLASS_PERF, 1, MAD_GET, 9); /* an agent with RMPP sends such classes alone */
	assert_int_equal(mad_send(&a, &neighbour, mad, 100, 0, true, &w, &s), -EINVAL);
	assert_null(s);
	end();
}

static void names(void **state)
{
	(void)state;
	for (int i = 0; i < MAD_DROP_COUNT; i++) {
		assert_non_null(mad_drop_name(i));
		for (int j = 0; j < i; j++)
			assert_string_not_equal(mad_drop_name(i), mad_drop_name(j));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(validation),
		cmocka_unit_test(refusals),
		cmocka_unit_test(segments_of_its_own),
		cmocka_unit_test(user_rmpp),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
