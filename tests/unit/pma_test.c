// SPDX-License-Identifier: BSD-3-Clause
/* The agent of performance management: what packets count, and how counters are read and written.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "subnet/state.h"
#include "subnet_world.h"
#include "wire/pma.h"

static int set_up(void **state)
{
	world_set_up(state);
	world_up(*state);
	return 0;
}

/* A request from H0 to a LID; the status. */
static int ask(struct world *w, uint16_t lid, uint8_t method, uint16_t attr, uint8_t *data)
{
	const struct mad_addr to = {.lid = lid, .qpn = 1, .sl = 3};
	struct mad_hdr h = {.base_version = 1,
		.mgmt_class = MAD_CLASS_PERF,
		.class_version = 1,
		.method = method,
		.attr = attr,
		.tid = 5};
	uint8_t mad[MAD_SIZE] = {0};

	wire_pack(&mad_hdr_format, &h, mad);
	memcpy(mad + PMA_DATA, data, PMA_DATA_SIZE);
	w->n_got = 0;
	assert_int_equal(subnet_send(w->s, H0, 1, 1, &to, mad), 0);
	assert_int_equal(w->n_got, 1);
	wire_unpack(&mad_hdr_format, w->got[0].mad, &h);
	assert_int_equal(h.method, MAD_GET_RESP);
	assert_int_equal(h.tid, 5);
	memcpy(data, w->got[0].mad + PMA_DATA, PMA_DATA_SIZE);
	return h.status;
}

static int counters(struct world *w, uint16_t lid, uint8_t method, uint16_t attr,
	const struct wire_format *f, struct pma_counters *c)
{
	uint8_t data[PMA_DATA_SIZE] = {0};
	int status;

	wire_pack(f, c, data);
	status = ask(w, lid, method, attr, data);
	wire_unpack(f, data, c);
	return status;
}

static struct counters *raw(struct world *w, uint32_t node, uint8_t port)
{
	return &w->s->counters[port_of(w->s, node, port)];
}

static void class_info(void **state)
{
	uint8_t data[PMA_DATA_SIZE] = {0};
	struct class_port_info i;

	assert_int_equal(ask(*state, LID_S1, MAD_GET, MAD_ATTR_CLASS_PORT_INFO, data), 0);
	wire_unpack(&class_port_info_format, data, &i);
	assert_int_equal(i.class_version, 1);
	assert_int_equal(i.cap_mask, 0x1300);
	assert_int_equal(i.cap_mask2, 2);
}

/* 288 bytes a packet, at both ends of each link on its way. */
static void packets_count(void **state)
{
	static const uint8_t ends[][2] = {{H0, 1}, {S0, 1}, {S0, 2}, {S1, 2}, {S1, 1}, {H1, 1}};
	struct world *w = *state;
	struct pma_counters c = {.port = 1};

	memset(w->s->counters, 0, w->s->t.head->n_ports * sizeof *w->s->counters);
	assert_int_equal(
		counters(w, LID_H1, MAD_GET, PMA_PORT_COUNTERS, &pma_counters_format, &c), 0);
	/* It has come in, its answer has not gone out yet. */
	assert_int_equal(c.value[COUNT_RCV_PKTS], 1);
	assert_int_equal(c.value[COUNT_RCV_DATA], 72);
	assert_int_equal(c.value[COUNT_XMIT_PKTS], 0);
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		const struct counters *r = raw(w, ends[i][0], ends[i][1]);

		assert_int_equal(r->all[COUNT_XMIT_PKTS], 1);
		assert_int_equal(r->all[COUNT_RCV_PKTS], 1);
		assert_int_equal(r->all[COUNT_XMIT_DATA], 72);
		assert_int_equal(r->all[COUNT_RCV_DATA], 72);
		assert_int_equal(r->all[COUNT_UNICAST_XMIT], 1);
	}
	c = (struct pma_counters){.port = 2};
	assert_int_equal(counters(w, LID_S0, MAD_GET, PMA_RCV_DATA_SL, &pma_data_sl_format, &c), 0);
	assert_int_equal(c.value[3], 72);
	assert_int_equal(c.value[0], 0);
}

static void saturation(void **state)
{
	static const struct {
		unsigned which;
		uint64_t most;
	} cases[] = {{COUNT_SYMBOL_ERROR, 0xffff}, {COUNT_LINK_DOWNED, 0xff},
		{COUNT_LINK_INTEGRITY, 15}, {COUNT_BUFFER_OVERRUN, 15},
		{COUNT_XMIT_CONSTRAINT, 0xff}, {COUNT_XMIT_WAIT, 0xffffffff}};
	struct world *w = *state;
	uint32_t port = port_of(w->s, S1, 4);

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct pma_counters c = {.port = 4};

		count(w->s, port, cases[i].which, UINT32_MAX - 1);
		count(w->s, port, cases[i].which, 1000);
		assert_int_equal(
			counters(w, LID_S1, MAD_GET, PMA_PORT_COUNTERS, &pma_counters_format, &c),
			0);
		assert_int_equal(c.value[cases[i].which], cases[i].most);
		assert_int_equal(raw(w, S1, 4)->all[cases[i].which], UINT32_MAX + 999ull);
	}
}

static void set_selected(void **state)
{
	struct pma_counters c = {.port = 4, .select = 1 << COUNT_XMIT_DATA, .select2 = 1};
	struct world *w = *state;
	uint32_t port = port_of(w->s, S1, 4);

	for (unsigned i = 0; i < COUNT_ALL; i++)
		count(w->s, port, i, 7);
	c.value[COUNT_XMIT_DATA] = 3;
	assert_int_equal(
		counters(w, LID_S1, MAD_SET, PMA_PORT_COUNTERS, &pma_counters_format, &c), 0);
	assert_int_equal(c.value[COUNT_XMIT_DATA], 3);
	assert_int_equal(c.value[COUNT_XMIT_WAIT], 0);
	assert_int_equal(c.value[COUNT_XMIT_PKTS], 7);
	c = (struct pma_counters){.port = 4, .select = 1 << 3, .select2 = 1 << 6};
	assert_int_equal(
		counters(w, LID_S1, MAD_SET, PMA_PORT_COUNTERS_EXT, &pma_counters_ext_format, &c),
		0);
	assert_int_equal(c.value[3], 0); /* PortRcvPkts, and nothing else of packets */
	assert_int_equal(c.value[2], 7);
	assert_int_equal(c.value[16 + 6], 0); /* PortXmitDiscards */
	assert_int_equal(c.value[16 + 5], 7);
}

/* What one attribute sets is read by the other: both show the same counters. */
static void one_set(void **state)
{
	/* by select bits of PortCounters and of PortCountersExtended */
	static const uint8_t pairs[][2] = {{COUNT_SYMBOL_ERROR, 16}, {COUNT_LINK_RECOVERY, 17},
		{COUNT_LINK_DOWNED, 18}, {COUNT_RCV_ERRORS, 19}, {COUNT_RCV_REMOTE_PHYSICAL, 20},
		{COUNT_RCV_SWITCH_RELAY, 21}, {COUNT_XMIT_DISCARDS, 22},
		{COUNT_XMIT_CONSTRAINT, 23}, {COUNT_RCV_CONSTRAINT, 24}, {COUNT_LINK_INTEGRITY, 25},
		{COUNT_BUFFER_OVERRUN, 26}, {COUNT_VL15_DROPPED, 27}, {COUNT_XMIT_WAIT, 28},
		{COUNT_XMIT_DATA, 0}, {COUNT_RCV_DATA, 1}, {COUNT_XMIT_PKTS, 2},
		{COUNT_RCV_PKTS, 3}};
	static const struct {
		uint16_t attr;
		const struct wire_format *format;
	} ways[] = {{PMA_PORT_COUNTERS, &pma_counters_format},
		{PMA_PORT_COUNTERS_EXT, &pma_counters_ext_format}};
	struct world *w = *state;

	for (size_t i = 0; i < 2 * sizeof pairs / sizeof pairs[0]; i++) {
		const unsigned from = i % 2, to = !from, bit = pairs[i / 2][from];
		struct pma_counters c = {.port = 4};

		c.select = bit < 16 ? 1u << bit : 0;
		c.select2 = bit < 16 ? 0 : 1u << (bit - 16);
		c.value[bit] = 1 + i % 9;
		assert_int_equal(
			counters(w, LID_S1, MAD_SET, ways[from].attr, ways[from].format, &c), 0);
		c = (struct pma_counters){.port = 4};
		assert_int_equal(
			counters(w, LID_S1, MAD_GET, ways[to].attr, ways[to].format, &c), 0);
		assert_int_equal(c.value[pairs[i / 2][to]], 1 + i % 9);
	}
}

static void all_ports(void **state)
{
	struct pma_counters c = {.port = PMA_ALL_PORTS};
	struct world *w = *state;

	for (uint8_t p = 1; p <= 4; p++)
		count(w->s, port_of(w->s, S1, p), COUNT_LINK_DOWNED, 100);
	assert_int_equal(
		counters(w, LID_S1, MAD_GET, PMA_PORT_COUNTERS_EXT, &pma_counters_ext_format, &c),
		0);
	assert_int_equal(c.value[18], 400);
	c = (struct pma_counters){.port = PMA_ALL_PORTS, .select = 0xffff};
	assert_int_equal(
		counters(w, LID_S1, MAD_GET, PMA_PORT_COUNTERS, &pma_counters_format, &c), 0);
	assert_int_equal(c.value[COUNT_LINK_DOWNED], 255);
	c = (struct pma_counters){.port = PMA_ALL_PORTS, .select = 0xffff};
	assert_int_equal(
		counters(w, LID_S1, MAD_SET, PMA_PORT_COUNTERS, &pma_counters_format, &c), 0);
	assert_int_equal(raw(w, S1, 3)->all[COUNT_LINK_DOWNED], 0);
}

/* Why packets were dropped. */
static void details(void **state)
{
	const struct mad_addr nowhere = {.lid = 7, .qpn = 1};
	struct pma_counters c = {.port = 1};
	uint8_t mad[MAD_SIZE] = {1, 0x32, 1, MAD_SEND};
	struct world *w = *state;

	assert_int_equal(subnet_send(w->s, H0, 1, 1, &nowhere, mad), 0);
	assert_int_equal(
		counters(w, LID_S0, MAD_GET, PMA_RCV_ERROR_DETAILS, &pma_rcv_errors_format, &c), 0);
	assert_int_equal(c.value[DETAIL_DLID_MAPPING], 1);
	assert_int_equal(subnet_unlink(w->s, S1, 2), 0);
	assert_int_equal(subnet_send(w->s, H0, 1, 1, &(struct mad_addr){.lid = LID_H1}, mad), 0);
	c = (struct pma_counters){.port = 2};
	assert_int_equal(counters(w, LID_S0, MAD_GET, PMA_XMIT_DISCARD_DETAILS,
				 &pma_xmit_discards_format, &c),
		0);
	/* The datagram; a trap came from the other side. */
	assert_int_equal(c.value[0], 1);
	c = (struct pma_counters){.port = 2, .select = 1};
	assert_int_equal(counters(w, LID_S0, MAD_SET, PMA_XMIT_DISCARD_DETAILS,
				 &pma_xmit_discards_format, &c),
		0);
	assert_int_equal(c.value[0], 0);
	assert_int_equal(raw(w, S0, 1)->detail[DETAIL_DLID_MAPPING], 1);
}

static void refusals(void **state)
{
	static const struct {
		uint16_t attr;
		uint8_t method, port;
		uint16_t lid;
		int status;
	} cases[] = {
		{PMA_PORT_COUNTERS, MAD_GET, 5, LID_S0, SMP_INVALID},
		{PMA_PORT_COUNTERS, MAD_GET, 0, LID_S0, 0},
		{PMA_PORT_COUNTERS, MAD_GET, 0, LID_H1, SMP_INVALID},
		{PMA_PORT_COUNTERS, MAD_GET, 2, LID_H0, 0}, /* its other port */
		{0x10, MAD_GET, 1, LID_S0, SMP_UNSUPPORTED},
		{0x17, MAD_GET, 1, LID_S0, SMP_UNSUPPORTED},
		{MAD_ATTR_CLASS_PORT_INFO, MAD_SET, 1, LID_S0, SMP_UNSUPPORTED},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint8_t data[PMA_DATA_SIZE] = {0, cases[i].port};

		assert_int_equal(ask(*state, cases[i].lid, cases[i].method, cases[i].attr, data),
			cases[i].status);
	}
}

static void without_a_packet(void **state)
{
	uint8_t mad[MAD_SIZE] = {1, MAD_CLASS_PERF, 1, MAD_GET};
	struct world *w = *state;

	mad[17] = PMA_PORT_COUNTERS;
	mad[PMA_DATA + 1] = 2;
	assert_int_equal(subnet_local_pma(w->s, S0, 0, mad), 0);
	assert_int_equal(mad[3], MAD_GET_RESP);
	assert_int_equal(mad[5], 0);
	assert_int_equal(subnet_local_pma(w->s, S0, 0, mad), -EINVAL);
	mad[3] = MAD_GET;
	assert_int_equal(subnet_local_pma(w->s, S0, 5, mad), -EINVAL);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, world_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(class_info),
		T(packets_count),
		T(saturation),
		T(set_selected),
		T(one_set),
		T(all_ports),
		T(details),
		T(refusals),
		T(without_a_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
