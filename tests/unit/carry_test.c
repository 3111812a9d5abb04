// SPDX-License-Identifier: BSD-3-Clause
/* MADs on their way through a small subnet: routes, keys, lanes, losses, loops. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fabric/walk.h"
#include "subnet/link.h"
#include "subnet_world.h"

static const struct route {
	uint8_t hops, path[4];
	const char *desc; /* NULL: it gets nowhere */
	uint8_t arrival;
	uint8_t back[4];
} routes[] = {
	{0, {0}, "H0 HCA-1", 1, {0}}, {1, {1}, "S0", 1, {1}}, {2, {1, 2}, "S1", 2, {1, 2}},
	{3, {1, 2, 1}, "H1 HCA-1", 1, {1, 2, 1}}, {3, {1, 2, 3}, "H0 HCA-1", 2, {1, 2, 2}},
	{2, {1, 1}, "H0 HCA-1", 1, {1, 1}},                         /* back where it came from */
	{1, {2}, NULL, 0, {0}},                                     /* the other port */
	{2, {1, 3}, NULL, 0, {0}},                                  /* nothing wired */
	{2, {1, 0}, NULL, 0, {0}},                                  /* no such port */
	{2, {1, 5}, NULL, 0, {0}}, {4, {1, 2, 1, 1}, NULL, 0, {0}}, /* through an adapter */
};

static unsigned directed(struct world *w, const struct route *r, uint16_t attr, uint8_t *mad)
{
	const struct smp_hdr h = {.mgmt_class = MAD_CLASS_SUBN_DR,
		.method = MAD_GET,
		.attr = attr,
		.tid = 77,
		.hop_cnt = r->hops,
		.dr_slid = LID_PERMISSIVE,
		.dr_dlid = LID_PERMISSIVE};

	memset(mad, 0, MAD_SIZE);
	memcpy(mad + SMP_INITIAL_PATH + 1, r->path, r->hops);
	return world_smp(w, &h, LID_PERMISSIVE, mad);
}

static void directed_routes(void **state)
{
	struct world *w = *state;
	uint8_t mad[MAD_SIZE];
	struct node_info i;

	for (size_t n = 0; n < sizeof routes / sizeof routes[0]; n++) {
		const struct route *r = &routes[n];

		assert_int_equal(directed(w, r, SMP_NODE_DESC, mad), r->desc != NULL);
		if (!r->desc)
			continue;
		assert_string_equal((char *)w->got[0].mad + SMP_DATA, r->desc);
		assert_int_equal(world_last(w).method, MAD_GET_RESP);
		assert_int_equal(world_last(w).returning, 1);
		assert_int_equal(world_last(w).status, 0);
		assert_int_equal(world_last(w).hop_ptr, 0);
		assert_int_equal(world_last(w).tid, 77);
		assert_int_equal(w->got[0].node, H0);
		assert_int_equal(w->got[0].port, 1);
		assert_int_equal(w->got[0].qp, 0);
		assert_int_equal(w->got[0].from.lid, LID_PERMISSIVE);
		assert_memory_equal(w->got[0].mad + SMP_RETURN_PATH + 1, r->back, r->hops);
		assert_int_equal(directed(w, r, SMP_NODE_INFO, mad), 1);
		wire_unpack(&node_info_format, w->got[0].mad + SMP_DATA, &i);
		assert_int_equal(i.local_port, r->arrival);
	}
	assert_int_equal(subnet_drops(w->s, SUBNET_DROP_ROUTE), 4);
	assert_int_equal(subnet_drops(w->s, SUBNET_DROP_LINK), 1);
}

/* By LID to a switch, then one directed hop; one directed hop, then by LID. */
static void combined_routes(void **state)
{
	static const struct {
		uint16_t slid, dlid, to;
		uint8_t path;
		const char *desc;
	} cases[] = {
		{LID_H0, LID_PERMISSIVE, LID_S1, 1, "H1 HCA-1"},
		{LID_H0, LID_PERMISSIVE, LID_S1, 2, "S0"},
		{LID_H0, LID_PERMISSIVE, LID_S0, 1, "H0 HCA-1"},
		{LID_PERMISSIVE, LID_H1, LID_PERMISSIVE, 1, "H1 HCA-1"},
		{LID_PERMISSIVE, LID_S0, LID_PERMISSIVE, 1, "S0"},
		{LID_PERMISSIVE, LID_NOWHERE, LID_PERMISSIVE, 1, NULL},
		{LID_H0, LID_PERMISSIVE, LID_H1, 1, NULL}, /* no switch */
	};
	struct world *w = *state;

	world_up(w);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct smp_hdr h = {.mgmt_class = MAD_CLASS_SUBN_DR,
			.method = MAD_GET,
			.attr = SMP_NODE_DESC,
			.hop_cnt = 1,
			.dr_slid = cases[i].slid,
			.dr_dlid = cases[i].dlid};
		uint8_t mad[MAD_SIZE] = {0};

		mad[SMP_INITIAL_PATH + 1] = cases[i].path;
		assert_int_equal(world_smp(w, &h, cases[i].to, mad), cases[i].desc != NULL);
		if (cases[i].desc)
			assert_string_equal((char *)w->got[0].mad + SMP_DATA, cases[i].desc);
	}
}

static unsigned by_lid(struct world *w, uint16_t lid)
{
	const struct smp_hdr h = {
		.mgmt_class = MAD_CLASS_SUBN_LID, .method = MAD_GET, .attr = SMP_NODE_DESC};
	uint8_t mad[MAD_SIZE] = {0};

	return world_smp(w, &h, lid, mad);
}

static void lid_routes(void **state)
{
	static const struct {
		uint16_t lid;
		const char *desc;
	} cases[] = {{LID_H0, "H0 HCA-1"}, {LID_H1, "H1 HCA-1"}, {LID_S0, "S0"}, {LID_S1, "S1"},
		{LID_H0_2, "H0 HCA-1"}, {LID_PERMISSIVE, "S0"}};
	struct world *w = *state;

	assert_int_equal(by_lid(w, LID_H1), 0);
	world_up(w);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(by_lid(w, cases[i].lid), 1);
		assert_string_equal((char *)w->got[0].mad + SMP_DATA, cases[i].desc);
		if (cases[i].lid != LID_PERMISSIVE)
			assert_int_equal(w->got[0].from.lid, cases[i].lid);
	}
	assert_int_equal(by_lid(w, 7), 0);      /* no entry */
	assert_int_equal(by_lid(w, 8), 0);      /* above the top */
	assert_int_equal(by_lid(w, 0xc001), 0); /* a group */
	assert_int_equal(subnet_drops(w->s, SUBNET_DROP_LID), 4);
}

/* Two switches that send a LID to each other: out of the port by which it came. */
static void loops_end(void **state)
{
	struct world *w = *state;

	world_up(w);
	assert_int_equal(by_lid(w, LID_NOWHERE), 0);
	assert_int_equal(subnet_drops(w->s, SUBNET_DROP_LOOP), 1);
	assert_int_equal(
		w->s->counters[w->s->t.nodes[S1].port0 + 2].all[COUNT_RCV_SWITCH_RELAY], 1);
}

/* A circle of two links that never ends by itself. */
static void circles_end(void **state)
{
	struct world *w = *state;
	uint8_t data[SMP_DATA_SIZE];

	world_up(w);
	assert_int_equal(subnet_link(w->s, S0, 3, S1, 4), 0);
	memset(data, 0xff, sizeof data);
	data[LID_NOWHERE] = 4;
	data[LID_H0] = 2;
	assert_int_equal(world_local(w, S1, 0, MAD_SET, SMP_LFT, 0, data), 0);
	assert_int_equal(by_lid(w, LID_NOWHERE), 0);
	assert_int_equal(subnet_drops(w->s, SUBNET_DROP_LOOP), 1);
	assert_true(w->s->counters[w->s->t.nodes[S0].port0 + 2].all[COUNT_XMIT_PKTS] >= 31);
}

static int send_gmp(struct world *w, const struct mad_addr *to, const struct mad_hdr *h)
{
	uint8_t mad[MAD_SIZE] = {0};

	wire_pack(&mad_hdr_format, h, mad);
	w->n_got = 0;
	return subnet_send(w->s, H0, 1, 1, to, mad);
}

static int gmp(struct world *w, uint16_t dlid, uint8_t sl, uint16_t pkey_index)
{
	const struct mad_addr to = {
		.lid = dlid, .sl = sl, .qpn = 1, .qkey = 0x80010000, .pkey_index = pkey_index};
	const struct mad_hdr h = {
		.base_version = 1, .mgmt_class = 0x32, .class_version = 1, .method = MAD_SEND};

	return send_gmp(w, &to, &h);
}

static void datagrams(void **state)
{
	struct world *w = *state;

	assert_int_equal(gmp(w, LID_H1, 0, 0), 0);
	assert_int_equal(w->n_got, 0);
	assert_int_equal(subnet_drops(w->s, SUBNET_DROP_LINK), 1);
	world_up(w);
	assert_int_equal(gmp(w, LID_H1, 3, 0), 0);
	assert_int_equal(w->n_got, 1);
	assert_int_equal(w->got[0].node, H1);
	assert_int_equal(w->got[0].qp, 1);
	assert_int_equal(w->got[0].from.lid, LID_H0);
	assert_int_equal(w->got[0].from.sl, 3);
	assert_int_equal(w->got[0].from.qpn, 1);
	assert_int_equal(w->got[0].from.qkey, 0x80010000);
	assert_int_equal(gmp(w, LID_H1, 0, 1), -ENODATA);
	assert_int_equal(gmp(w, LID_H1, 0, 64), -ENODATA);
	assert_int_equal(gmp(w, LID_H0, 0, 0), 0);
	assert_int_equal(w->n_got, 1); /* to itself */
	assert_int_equal(gmp(w, LID_S1, 0, 0), 0);
	assert_int_equal(w->got[0].port, 0);
}

/* A LID of H0 with those bits below it, as H1 sees it: of a datagram, of an SMP by LID. */
static void check_leaves_from(struct world *w, uint8_t path_bits, uint16_t lid)
{
	const struct mad_addr to = {
		.lid = LID_H1, .qpn = 1, .qkey = 0x80010000, .path_bits = path_bits};
	const struct mad_hdr h = {
		.base_version = 1, .mgmt_class = 0x32, .class_version = 1, .method = MAD_SEND};
	uint8_t smp[MAD_SIZE] = {1, MAD_CLASS_SUBN_LID, 1, MAD_GET};

	assert_int_equal(send_gmp(w, &to, &h), 0);
	assert_int_equal(w->n_got, 1);
	assert_int_equal(w->got[0].from.lid, lid);
	smp[16] = SMP_SM_INFO >> 8;
	smp[17] = SMP_SM_INFO & 0xff;
	assert_int_equal(subnet_send(w->s, H0, 1, 0, &to, smp), 0);
	assert_int_equal(w->n_got, 2);
	assert_int_equal(w->got[1].node, H1);
	assert_int_equal(w->got[1].from.lid, lid);
}

/* To H0 itself, by one of its LIDs: which one is told. */
static void check_comes_to(struct world *w, uint16_t lid)
{
	assert_int_equal(gmp(w, lid, 0, 0), 0);
	assert_int_equal(w->n_got, 1);
	assert_int_equal(w->got[0].from.path_bits, lid - 16);
}

/* With an LMC a program says from which of its LIDs a MAD leaves, and hears to which one it came.
 */
static void path_bits(void **state)
{
	static const struct {
		uint8_t lmc, bits;
		uint16_t lid;
	} cases[] = {{0, 0, 16}, {0, 3, 16}, {1, 1, 17}, {1, 2, 16}, {2, 0, 16}, {2, 3, 19},
		{2, 6, 18}, {4, 15, 31}};
	struct world *w = *state;

	world_up(w);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct port_info info;

		assert_int_equal(world_get_port(w, H0, 1, &info), 0);
		info.state = info.phys_state = 0;
		info.lid = 16;
		info.lmc = cases[i].lmc;
		assert_int_equal(world_set_port(w, H0, 1, &info), 0);
		check_leaves_from(w, cases[i].bits, cases[i].lid);
		check_comes_to(w, cases[i].lid);
	}
}

/* Where no queue pair is, nobody hears it, and nobody answers. */
static void other_queue_pairs(void **state)
{
	const struct mad_addr to = {.lid = LID_H1, .qpn = 5, .qkey = 0x80010000};
	const struct mad_hdr h = {.base_version = 1,
		.mgmt_class = MAD_CLASS_DEV_MGT,
		.class_version = 1,
		.method = MAD_GET,
		.attr = 1};
	struct world *w = *state;

	world_up(w);
	assert_int_equal(send_gmp(w, &to, &h), 0);
	assert_int_equal(w->n_got, 0);
	assert_int_equal(subnet_drops(w->s, SUBNET_DROP_QP), 1);
}

static void bad_calls(void **state)
{
	const struct mad_addr to = {.lid = LID_H1};
	struct world *w = *state;
	uint8_t smp[MAD_SIZE] = {1, MAD_CLASS_SUBN_LID, 1, MAD_GET}, gm[MAD_SIZE] = {1, 4, 1, 1};

	assert_int_equal(subnet_send(w->s, WORLD_NODES, 1, 0, &to, smp), -EINVAL);
	assert_int_equal(subnet_send(w->s, H0, 0, 0, &to, smp), -EINVAL);
	assert_int_equal(subnet_send(w->s, H0, 3, 0, &to, smp), -EINVAL);
	assert_int_equal(subnet_send(w->s, S0, 1, 0, &to, smp), -EINVAL);
	assert_int_equal(subnet_send(w->s, H0, 1, 1, &to, smp), -EINVAL);
	assert_int_equal(subnet_send(w->s, H0, 1, 0, &to, gm), -EINVAL);
	assert_int_equal(subnet_send(w->s, H0, 1, 2, &to, gm), -EINVAL);
}

/* What nobody takes is answered if it is a Get or Set, by the rules of its class. */
static void unwanted(void **state)
{
	static const struct {
		uint8_t class, method;
		uint16_t attr;
		bool answered;
	} cases[] = {{MAD_CLASS_DEV_MGT, MAD_GET, 1, true}, {0x32, MAD_SET, 1, true},
		{0x32, MAD_SEND, 1, false}, {MAD_CLASS_SUBN_LID, MAD_GET, SMP_SM_INFO, true},
		{MAD_CLASS_SUBN_LID, MAD_TRAP, SMP_NOTICE, false}};
	struct world *w = *state;

	world_up(w);
	w->nobody = true;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct mad_addr to = {.lid = LID_H1, .qpn = 1};
		const struct mad_hdr h = {.base_version = 1,
			.mgmt_class = cases[i].class,
			.class_version = 1,
			.method = cases[i].method,
			.attr = cases[i].attr};
		uint8_t mad[MAD_SIZE] = {0};

		wire_pack(&mad_hdr_format, &h, mad);
		w->n_got = 0;
		assert_int_equal(subnet_send(w->s, H0, 1, cases[i].class != 1, &to, mad), 0);
		assert_int_equal(w->n_got, cases[i].answered);
		if (cases[i].answered)
			assert_int_equal(world_last(w).status, MAD_STATUS_UNSUPPORTED);
	}
	assert_int_equal(subnet_drops(w->s, SUBNET_DROP_NO_AGENT), 2);
}

static void set_pkeys(struct world *w, uint32_t node, uint8_t port, uint16_t a, uint16_t b)
{
	uint8_t data[SMP_DATA_SIZE] = {a >> 8, a, b >> 8, b};

	assert_int_equal(world_local(w, node, node >= S0 ? 0 : port, MAD_SET, SMP_PKEY_TABLE,
				 (uint32_t)port << 16, data),
		0);
}

static void pkeys_match(void **state)
{
	static const struct {
		uint16_t sent, has;
		bool passes;
	} cases[] = {{0xffff, 0xffff, true}, {0xffff, 0x7fff, true}, {0x7fff, 0xffff, true},
		{0x7fff, 0x7fff, false}, {0x8001, 0x8002, false}, {0x8001, 0x0001, true}};
	struct world *w = *state;
	unsigned refused = 0;

	world_up(w);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		set_pkeys(w, H0, 1, 0x9999, cases[i].sent);
		set_pkeys(w, H1, 1, cases[i].has, 0);
		assert_int_equal(gmp(w, LID_H1, 0, 1), 0);
		if (cases[i].passes) {
			assert_int_equal(w->n_got, 1);
			assert_int_equal(w->got[0].from.pkey_index, 0);
		} else {
			refused++;
			assert_int_equal(subnet_drops(w->s, SUBNET_DROP_PKEY), refused);
		}
	}
	assert_int_equal(port_at(w->s, port_of(w->s, H1, 1))->pkey_violations, refused);
	assert_int_equal(w->events[H1][1] & SUBNET_PKEY_CHANGE, SUBNET_PKEY_CHANGE);
}

/* An agent answers with its own port's key: a limited member takes that of a full one. */
static void agents_answer_limited_members(void **state)
{
	const struct mad_addr to = {.lid = LID_H1, .qpn = 1, .qkey = 0x80010000, .pkey_index = 1};
	struct mad_hdr h = {
		.base_version = 1, .mgmt_class = 4, .class_version = 1, .method = MAD_GET};
	struct world *w = *state;

	world_up(w);
	set_pkeys(w, H0, 1, 0xffff, 0x0002);
	set_pkeys(w, H1, 1, 0xffff, 0x8002);
	for (h.attr = 0; h.attr < 2; h.attr++) { /* refused, and ClassPortInfo */
		assert_int_equal(send_gmp(w, &to, &h), 0);
		assert_int_equal(w->n_got, 1);
		assert_int_equal(w->got[0].node, H0);
		assert_int_equal(w->got[0].from.pkey_index, 1);
	}
}

static void switches_enforce_pkeys(void **state)
{
	struct world *w = *state;
	struct port_info i;
	struct counters *c = &w->s->counters[w->s->t.nodes[S0].port0 + 1];

	world_up(w);
	set_pkeys(w, S0, 1, 0x8001, 0);
	assert_int_equal(gmp(w, LID_H1, 0, 0), 0);
	assert_int_equal(w->n_got, 1);
	assert_int_equal(world_get_port(w, S0, 1, &i), 0);
	i.part_in = 1;
	i.state = i.phys_state = 0;
	assert_int_equal(world_set_port(w, S0, 1, &i), 0);
	assert_int_equal(i.part_in, 1);
	assert_int_equal(gmp(w, LID_H1, 0, 0), 0);
	/* Trap 259 reaches the SM. */
	assert_int_equal(w->n_got, 1);
	assert_int_equal(world_last(w).method, MAD_TRAP);
	assert_int_equal(c->all[COUNT_RCV_CONSTRAINT], 1);
	assert_int_equal(by_lid(w, LID_H1), 1); /* SMPs have no P_Key */
}

/* A switch's port asks for the low 15 bits alone: limited or full is a matter of the ends. */
static void switches_pass_members(void **state)
{
	static const struct {
		uint16_t sent, has;
		bool passes;
	} cases[] = {{0x7fff, 0x7fff, true}, {0x7fff, 0xffff, true}, {0xffff, 0x7fff, true},
		{0xffff, 0xffff, true}, {0x0001, 0x0001, true}, {0x0001, 0x8002, false},
		{0x8001, 0x7fff, false}};
	static const struct {
		uint8_t node, port, enforce;
	} ways[] = {{S0, 1, ENFORCE_IN}, {S0, 2, ENFORCE_OUT}, {S1, 2, ENFORCE_IN},
		{S1, 1, ENFORCE_OUT}};
	struct world *w = *state;
	uint64_t refused = 0;

	world_up(w);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0] * 4; i++) {
		uint32_t at = port_of(w->s, ways[i % 4].node, ways[i % 4].port);
		const struct walk_packet p = {
			.port = port_of(w->s, H0, 1), .dlid = LID_H1, .pkey = cases[i / 4].sent};
		struct walk way;

		set_pkeys(w, H0, 1, 0x9999, cases[i / 4].sent);
		set_pkeys(w, H1, 1, cases[i / 4].sent | 0x8000, 0);
		set_pkeys(w, ways[i % 4].node, ways[i % 4].port, cases[i / 4].has, 0);
		tables_store(&hot_at(w->s, at)->enforce, ways[i % 4].enforce);
		assert_int_equal(gmp(w, LID_H1, 0, 1), 0);
		walk(&w->s->t, &p, &way); /* data goes as datagrams do */
		assert_int_equal(way.verdict == WALK_ARRIVES, cases[i / 4].passes);
		tables_store(&hot_at(w->s, at)->enforce, 0);
		refused += !cases[i / 4].passes;
		assert_int_equal(subnet_drops(w->s, SUBNET_DROP_PKEY), refused);
	}
	assert_int_equal(port_at(w->s, port_of(w->s, H1, 1))->pkey_violations, 0);
}

static void lanes(void **state)
{
	uint8_t data[SMP_DATA_SIZE] = {0x0f, 0x70}; /* SL 1 to VL 15, SL 2 to VL 7 */
	struct world *w = *state;
	struct port_info i;

	world_up(w);
	assert_int_equal(world_local(w, S0, 0, MAD_SET, SMP_SL2VL, 1 << 8 | 2, data), 0);
	assert_int_equal(gmp(w, LID_H1, 1, 0), 0);
	assert_int_equal(w->n_got, 0);
	assert_int_equal(gmp(w, LID_H1, 2, 0), 0);
	assert_int_equal(w->n_got, 1);
	assert_int_equal(world_get_port(w, S0, 2, &i), 0);
	i.oper_vls = 3; /* VL0 to VL3 */
	i.state = i.phys_state = 0;
	assert_int_equal(world_set_port(w, S0, 2, &i), 0);
	assert_int_equal(gmp(w, LID_H1, 2, 0), 0);
	assert_int_equal(w->n_got, 0);
	assert_int_equal(subnet_drops(w->s, SUBNET_DROP_VL), 2);
	assert_int_equal(by_lid(w, LID_H1), 1); /* VL15 */
}

/* A packet of data makes an armed port active. */
static void armed_ports(void **state)
{
	struct world *w = *state;
	struct port_info i;

	world_up(w);
	link_set_state(w->s, port_of(w->s, H1, 1), PORT_ARMED);
	assert_int_equal(gmp(w, LID_H1, 0, 0), 0);
	assert_int_equal(w->n_got, 1);
	assert_int_equal(world_get_port(w, H1, 1, &i), 0);
	assert_int_equal(i.state, PORT_ACTIVE);
	link_set_state(w->s, port_of(w->s, H0, 1), PORT_ARMED);
	assert_int_equal(gmp(w, LID_H1, 0, 0), 0);
	assert_int_equal(w->n_got, 0);
}

static void injected_errors(void **state)
{
	struct world *w = *state;
	unsigned came = 0;

	world_up(w);
	assert_int_equal(subnet_set_errors(w->s, S0, 1, 101, 0), -EINVAL);
	assert_int_equal(subnet_set_errors(w->s, S0, 5, 1, 0), -EINVAL);
	assert_int_equal(subnet_set_errors(w->s, S0, 1, 100, SMP_NODE_INFO), 0);
	assert_int_equal(by_lid(w, LID_H1), 1);
	assert_int_equal(subnet_set_errors(w->s, S0, 1, 100, SMP_NODE_DESC), 0);
	assert_int_equal(by_lid(w, LID_H1), 0);
	assert_int_equal(subnet_set_errors(w->s, S0, 1, 30, 0), 0);
	for (int i = 0; i < 1000; i++)
		came += by_lid(w, LID_H1);
	assert_in_range(came, 400, 580); /* 0.7 squared */
	assert_int_equal(subnet_drops(w->s, SUBNET_DROP_INJECTED), 1001 - came);
	/* Of several ports the last one counts as well as the first. */
	assert_int_equal(subnet_set_errors(w->s, S0, 2, 100, 0), 0);
	assert_int_equal(subnet_set_errors(w->s, S0, 1, 0, 0), 0);
	assert_int_equal(by_lid(w, LID_H1), 0);
	assert_int_equal(subnet_set_errors(w->s, S0, 2, 0, 0), 0);
	assert_int_equal(by_lid(w, LID_H1), 1);
	assert_int_equal(w->s->losing, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(directed_routes, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(combined_routes, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(lid_routes, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(loops_end, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(circles_end, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(datagrams, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(path_bits, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(other_queue_pairs, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(bad_calls, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(unwanted, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(pkeys_match, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(
			agents_answer_limited_members, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(
			switches_enforce_pkeys, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(
			switches_pass_members, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(lanes, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(armed_ports, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(injected_errors, world_set_up, world_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
