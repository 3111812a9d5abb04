// SPDX-License-Identifier: BSD-3-Clause
/*
 * Packets to QP1, by IPv4 and IPv6: what weftd sends it takes itself, at another address; and what
 * is wrong with a packet is named, before anybody sees the MAD.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/qp1.h"
#include "daemon/wire.h"
#include "mad/agents.h"
#include "wire/icrc.h"

enum { PACKET = 280, CLASS = 0x30, QKEY_AT = 12, MAD_AT = 20 };

static struct server server;
static struct node node;
static struct fabric_page page;
static struct wire_port port;
static struct mad_layer layer;
static struct mad_port mads;
static struct mad_agent agent;
static struct qp1 qp1;
static struct {
	struct wire_out out;
	uint8_t packet[PACKET];
	unsigned n, held;
} sent;
static unsigned received;
static struct mad_addr last_from;

/* Instead of the port. */
int __wrap_wire_send(struct server *s, const struct wire_out *out);
int __wrap_wire_hold(struct server *s);
void __wrap_wire_release(struct server *s);

int __wrap_wire_send(struct server *s, const struct wire_out *out)
{
	assert_ptr_equal(s, &server);
	assert_int_equal(out->len, PACKET);
	sent.out = *out;
	memcpy(sent.packet, out->packet, PACKET);
	sent.n++;
	return 0;
}

int __wrap_wire_hold(struct server *s)
{
	(void)s;
	sent.held++;
	return 0;
}

void __wrap_wire_release(struct server *s)
{
	(void)s;
	sent.held--;
}

static uint64_t now(void *arg)
{
	(void)arg;
	return 1;
}

static void deliver(struct server *s)
{
	(void)s;
}

static void on_mad(struct mad_agent *a, const struct mad_addr *from, const uint8_t *mad)
{
	(void)a;
	assert_int_equal(mad[1], CLASS);
	assert_int_equal(mad[255], 0x77);
	last_from = *from;
	received++;
}

static void set_gid(unsigned i, const uint8_t raw[16])
{
	struct fabric_port *p = &page.port[0];

	memcpy(p->gid[i].raw, raw, 16);
	p->gid[i].type = 2;
	p->gid[i].ifindex = 5 + i;
	p->n_gids = i + 1;
}

static const uint8_t near_gid[2][16] = {{[10] = 0xff, 0xff, 10, 0, 0, 1}, {0xfe, 0x80, [15] = 1}};
static const uint8_t far_gid[2][16] = {{[10] = 0xff, 0xff, 10, 0, 0, 2}, {0xfe, 0x80, [15] = 2}};

static int set_up(void **state)
{
	(void)state;
	setenv("WEFT_WIRE", "auto", 1);
	node.page = &page;
	server.node = &node;
	server.wire = &port;
	server.deliver = deliver;
	layer.now = now;
	mad_layer_init(&layer);
	mads.layer = &layer;
	agent = (struct mad_agent){.reg = {.qpn = 1,
					   .mgmt_class = CLASS,
					   .class_version = 1,
					   .oui = 1,
					   .methods = {1ull << MAD_GET}},
		.receive = on_mad};
	qp1_start(&qp1, &server, &mads);
	return mad_register(&mads, &agent);
}

static void make_mad(uint8_t mad[MAD_SIZE])
{
	memset(mad, 0, MAD_SIZE);
	mad[0] = 1;
	mad[1] = CLASS;
	mad[2] = 1;
	mad[3] = MAD_GET;
	mad[39] = 1; /* OUI */
	mad[255] = 0x77;
}

/* One from us, i: by which family. */
static void send_one(int i)
{
	struct mad_addr to = mad_addr_of_gids(near_gid[i], far_gid[i]);
	uint8_t mad[MAD_SIZE];

	set_gid(0, near_gid[0]);
	set_gid(1, near_gid[1]);
	make_mad(mad);
	to.grh.traffic_class = 8;
	assert_int_equal(qp1_send(&qp1, &to, mad), 0);
}

/* What was sent last comes to the other address; change: of one byte, with a right ICRC if fix. */
static void arrive(size_t at, uint8_t change, bool fix, size_t len)
{
	struct wire_handed from = {
		.src_port = ROCE_PORT, .tos = sent.out.tos, .ipv6 = sent.out.ipv6};
	struct icrc_path path = {.ipv6 = from.ipv6, .src_port = ROCE_PORT, .dst_port = ROCE_PORT};
	uint8_t packet[PACKET];

	memcpy(packet, sent.packet, PACKET);
	memcpy(from.src, sent.out.src, 16);
	memcpy(from.dst, sent.out.dst, 16);
	memcpy(path.src, from.src, 16);
	memcpy(path.dst, from.dst, 16);
	packet[at] ^= change;
	if (fix) {
		size_t all = len - ROCE_ICRC_LEN, head = all < MAD_AT ? all : MAD_AT;

		icrc_put(icrc_add(icrc_begin(&path, 0, len, packet, head), packet + head,
				 all - head),
			packet + all);
	}
	port.hand.qp1(&server, &from, packet, len);
}

static void be_far(int i)
{
	memset(&page.port[0], 0, sizeof page.port[0]);
	set_gid(0, far_gid[i]);
}

static void there_and_back(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		unsigned before = received;

		send_one(i);
		assert_int_equal(sent.out.ipv6, i);
		assert_int_equal(sent.out.tos, 8);
		assert_int_equal(sent.out.ifindex, i ? 6 : 0); /* a link-local address has one */
		be_far(i);
		arrive(0, 0, false, PACKET);
		assert_int_equal(received, before + 1);
		assert_int_equal(last_from.qpn, 1);
		assert_memory_equal(last_from.grh.remote, near_gid[i], 16);
		assert_memory_equal(last_from.grh.local, far_gid[i], 16);
	}
	assert_int_equal(sent.held, 1);
	qp1_close(&qp1);
	assert_int_equal(sent.held, 0);
}

static void is_dropped(enum qp1_drop why, size_t at, uint8_t change, bool fix, size_t len)
{
	uint64_t before = qp1.drops[why];
	unsigned n = received;

	arrive(at, change, fix, len);
	assert_int_equal(qp1.drops[why], before + 1);
	assert_int_equal(received, n);
}

static void faults(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		send_one(i);
		be_far(i);
		is_dropped(QP1_DROP_MALFORMED, 0, 0x40, true, PACKET); /* RC */
		is_dropped(QP1_DROP_MALFORMED, 0, 0x01, true, PACKET); /* an immediate */
		is_dropped(QP1_DROP_MALFORMED, 1, 0x01, true, PACKET); /* version */
		is_dropped(QP1_DROP_MALFORMED, 0, 0, true, 18);        /* short */
		is_dropped(QP1_DROP_LENGTH, 0, 0, true, PACKET - 4);
		is_dropped(QP1_DROP_PKEY, 3, 0x01, true, PACKET);
		is_dropped(QP1_DROP_QKEY, QKEY_AT, 0x01, true, PACKET);
		is_dropped(QP1_DROP_ICRC, MAD_AT + 200, 0x10, false, PACKET);
		set_gid(1, near_gid[i]); /* now it comes from ourselves */
		is_dropped(QP1_DROP_ADDRESS, 0, 0, false, PACKET);
		be_far(!i); /* it is for somebody else */
		is_dropped(QP1_DROP_ADDRESS, 0, 0, false, PACKET);
		be_far(i);
		arrive(2, 0x80, true, PACKET); /* a limited member */
		assert_int_equal(qp1.drops[QP1_DROP_PKEY], i + 1);
	}
}

static void goes_nowhere(void **state)
{
	struct mad_addr to = mad_addr_of_gids(near_gid[0], far_gid[1]);
	static const uint8_t group[16] = {[10] = 0xff, 0xff, 239, 1, 2, 3};
	uint8_t mad[MAD_SIZE];
	unsigned n;

	(void)state;
	send_one(0);
	n = sent.n;
	make_mad(mad);
	assert_int_equal(qp1_send(&qp1, &to, mad), -EHOSTUNREACH); /* of two families */
	to = mad_addr_of_gids(far_gid[0], near_gid[0]);
	assert_int_equal(qp1_send(&qp1, &to, mad), -EHOSTUNREACH); /* from an address not ours */
	to = mad_addr_of_gids(near_gid[0], group);
	assert_int_equal(qp1_send(&qp1, &to, mad), -EHOSTUNREACH);
	assert_int_equal(sent.n, n);
}

static void set_faults(const char *text)
{
	struct fault_rules rules;
	struct fault_error why;

	assert_int_equal(fault_parse(text, strlen(text), &rules, &why), 0);
	qp1_set_faults(&qp1, &rules);
}

/* Rules of faults for what leaves and for what comes; those that hold back do nothing here. */
static void does_faults(void **state)
{
	static const struct {
		const char *rules;
		unsigned sent, received;
	} cases[] = {
		{"drop out", 0, 1},
		{"duplicate out", 2, 1},
		{"drop in", 1, 0},
		{"duplicate in", 1, 2},
		{"corrupt in", 1, 0},
		{"delay 1s; drop", 1, 1},
		{"drop opcode=rc", 1, 1},
		{"", 1, 1},
	};

	(void)state;
	send_one(0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		unsigned n = sent.n, before = received;
		uint64_t faulted = qp1.faulted;

		set_faults(cases[i].rules);
		send_one(0);
		assert_int_equal(sent.n - n, cases[i].sent);
		be_far(0);
		arrive(0, 0, false, PACKET);
		assert_int_equal(received - before, cases[i].received);
		assert_int_equal(
			qp1.faulted - faulted, cases[i].sent != 1 || cases[i].received != 1);
	}
	qp1_close(&qp1);
}

/* Without a network nobody can come. */
static void opens_for_a_network(void **state)
{
	static const uint8_t lo[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1}, lo6[16] = {[15] = 1};

	(void)state;
	qp1_close(&qp1);
	be_far(0);
	set_gid(1, lo);
	set_gid(2, lo6);
	qp1_open(&qp1);
	assert_int_equal(sent.held, 0);
	set_gid(3, near_gid[0]);
	qp1_open(&qp1);
	qp1_open(&qp1);
	assert_int_equal(sent.held, 1);
	qp1_close(&qp1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(faults),
		cmocka_unit_test(goes_nowhere),
		cmocka_unit_test(does_faults),
		cmocka_unit_test(opens_for_a_network),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
