// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "subnet_world.h"

static bool deliver(void *arg, uint32_t node, uint8_t port, unsigned qp,
	const struct mad_addr *from, const uint8_t mad[MAD_SIZE])
{
	struct world *w = arg;
	struct got *g = &w->got[w->n_got < WORLD_GOT ? w->n_got : WORLD_GOT - 1];

	if (w->nobody && !(mad[3] & MAD_RESPONSE))
		return false;
	w->n_got++;
	*g = (struct got){.node = node, .port = port, .qp = qp, .from = *from};
	memcpy(g->mad, mad, MAD_SIZE);
	return true;
}

static void event(void *arg, uint32_t node, uint8_t port, unsigned events)
{
	struct world *w = arg;

	w->events[node][port] |= events;
}

static uint64_t now(void *arg)
{
	return ((struct world *)arg)->now;
}

static void wire(struct topo_node *n, uint32_t a, uint8_t p, uint32_t b, uint8_t q)
{
	n[a].ports[p].peer = b;
	n[a].ports[p].peer_port = q;
	n[b].ports[q].peer = a;
	n[b].ports[q].peer_port = p;
}

void world_begin(struct world *w)
{
	struct topo_port ports[WORLD_NODES][5] = {0};
	struct topo_node nodes[WORLD_NODES] = {
		[H0] = {.kind = TOPO_CA, .n_ports = 2, .description = "H0 HCA-1", .guid = 0x100000},
		[H1] = {.kind = TOPO_CA, .n_ports = 1, .description = "H1 HCA-1", .guid = 0x100010},
		[S0] = {.kind = TOPO_SWITCH, .n_ports = 4, .description = "S0", .guid = 0x200000},
		[S1] = {.kind = TOPO_SWITCH,
			.n_ports = 4,
			.description = "S1",
			.guid = 0x200001,
			.enhanced = true},
	};
	const struct topo t = {.nodes = nodes, .n_nodes = WORLD_NODES, .n_cas = 2};
	const struct subnet_ops ops = {deliver, event, now, w};

	memset(w, 0, sizeof *w);
	w->now = 1000;
	for (int i = 0; i < WORLD_NODES; i++) {
		nodes[i].ports = ports[i];
		nodes[i].system_guid = nodes[i].guid;
		nodes[i].vendor = 0xabcdef;
		nodes[i].device = 0x1234;
		for (int p = 0; p < 5; p++)
			ports[i][p] = (struct topo_port){.guid = nodes[i].guid + p,
				.peer = TOPO_NONE,
				.width = 1 | 2,
				.speed = 1 | 2 | 4};
	}
	ports[H0][1].ext_speed = ports[S0][1].ext_speed = 3;
	ports[S0][2].ext_speed = ports[S1][2].ext_speed = 1 | 32; /* FDR, XDR */
	ports[S0][2].speed = ports[S1][2].speed = 1 | 2 | 4 | 8;  /* FDR10, too */
	ports[S1][1].speed = ports[H1][1].speed = 1 | 2 | 4 | 8;
	wire(nodes, H0, 1, S0, 1);
	wire(nodes, S0, 2, S1, 2);
	wire(nodes, S1, 1, H1, 1);
	wire(nodes, H0, 2, S1, 3);
	assert_int_equal(subnet_create(&w->s, &t, &ops), 0);
}

void world_end(struct world *w)
{
	subnet_free(w->s);
}

int world_set_up(void **state)
{
	static struct world w;

	world_begin(&w);
	*state = &w;
	return 0;
}

int world_tear_down(void **state)
{
	world_end(*state);
	return 0;
}

int world_local(struct world *w, uint32_t node, uint8_t port, uint8_t method, uint16_t attr,
	uint32_t mod, uint8_t data[SMP_DATA_SIZE])
{
	struct smp_hdr h = {.base_version = 1,
		.mgmt_class = MAD_CLASS_SUBN_LID,
		.class_version = 1,
		.method = method,
		.attr = attr,
		.attr_mod = mod};
	uint8_t mad[MAD_SIZE] = {0};

	wire_pack(&smp_hdr_format, &h, mad);
	if (data)
		memcpy(mad + SMP_DATA, data, SMP_DATA_SIZE);
	assert_int_equal(subnet_local_smp(w->s, node, port, mad), 0);
	wire_unpack(&smp_hdr_format, mad, &h);
	assert_int_equal(h.method, MAD_GET_RESP);
	if (data)
		memcpy(data, mad + SMP_DATA, SMP_DATA_SIZE);
	return h.status;
}

static int port_info(
	struct world *w, uint32_t node, uint8_t port, uint8_t method, struct port_info *i)
{
	uint8_t data[SMP_DATA_SIZE] = {0}, at = node >= S0 ? 0 : port;
	int status;

	wire_pack(&port_info_format, i, data);
	status = world_local(w, node, at, method, SMP_PORT_INFO, port, data);
	wire_unpack(&port_info_format, data, i);
	return status;
}

int world_get_port(struct world *w, uint32_t node, uint8_t port, struct port_info *i)
{
	memset(i, 0, sizeof *i);
	return port_info(w, node, port, MAD_GET, i);
}

int world_set_port(struct world *w, uint32_t node, uint8_t port, struct port_info *i)
{
	return port_info(w, node, port, MAD_SET, i);
}

static void set_lid(struct world *w, uint32_t node, uint8_t port, uint16_t lid)
{
	struct port_info i;

	assert_int_equal(world_get_port(w, node, port, &i), 0);
	i.lid = lid;
	i.sm_lid = LID_H0;
	i.state = i.phys_state = 0;
	assert_int_equal(world_set_port(w, node, port, &i), 0);
}

static void activate(struct world *w, uint32_t node, uint8_t port)
{
	struct port_info i;

	for (uint8_t state = PORT_ARMED; state <= PORT_ACTIVE; state++) {
		assert_int_equal(world_get_port(w, node, port, &i), 0);
		i.state = state;
		i.phys_state = 0;
		assert_int_equal(world_set_port(w, node, port, &i), 0);
	}
}

static void set_routes(struct world *w, uint32_t node, const uint8_t routes[8])
{
	uint8_t data[SMP_DATA_SIZE];
	struct switch_info i;

	memset(data, 0xff, sizeof data);
	memcpy(data, routes, 8);
	assert_int_equal(world_local(w, node, 0, MAD_SET, SMP_LFT, 0, data), 0);
	assert_int_equal(world_local(w, node, 0, MAD_GET, SMP_SWITCH_INFO, 0, data), 0);
	wire_unpack(&switch_info_format, data, &i);
	i.lft_top = 7;
	wire_pack(&switch_info_format, &i, data);
	assert_int_equal(world_local(w, node, 0, MAD_SET, SMP_SWITCH_INFO, 0, data), 0);
}

void world_up(struct world *w)
{
	/* by LID, from 0; LID 6 loops between the switches */
	static const uint8_t s0[8] = {0xff, 1, 2, 0, 2, 2, 2, 0xff};
	static const uint8_t s1[8] = {0xff, 2, 1, 2, 0, 3, 2, 0xff};
	static const uint8_t ends[][2] = {
		{H0, 1}, {S0, 1}, {S0, 2}, {S1, 2}, {S1, 1}, {H1, 1}, {H0, 2}, {S1, 3}, {S1, 0}};

	set_lid(w, H0, 1, LID_H0);
	set_lid(w, H0, 2, LID_H0_2);
	set_lid(w, H1, 1, LID_H1);
	set_lid(w, S0, 0, LID_S0);
	set_lid(w, S1, 0, LID_S1);
	set_routes(w, S0, s0);
	set_routes(w, S1, s1);
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
		activate(w, ends[i][0], ends[i][1]);
	w->n_got = 0;
	memset(w->events, 0, sizeof w->events);
}

unsigned world_smp(struct world *w, const struct smp_hdr *h, uint16_t dlid, uint8_t mad[MAD_SIZE])
{
	const struct mad_addr to = {.lid = dlid};
	struct smp_hdr full = *h;

	full.base_version = 1;
	if (!full.class_version)
		full.class_version = 1;
	wire_pack(&smp_hdr_format, &full, mad);
	w->n_got = 0;
	assert_int_equal(subnet_send(w->s, H0, 1, 0, &to, mad), 0);
	return w->n_got;
}

struct smp_hdr world_last(const struct world *w)
{
	struct smp_hdr h;

	assert_in_range(w->n_got, 1, WORLD_GOT);
	wire_unpack(&smp_hdr_format, w->got[w->n_got - 1].mad, &h);
	return h;
}

int world_keyed(struct world *w, uint8_t method, uint64_t mkey, struct port_info *i)
{
	const struct smp_hdr h = {.mgmt_class = MAD_CLASS_SUBN_LID,
		.method = method,
		.attr = SMP_PORT_INFO,
		.mkey = mkey};
	uint8_t mad[MAD_SIZE] = {0};
	unsigned n;

	i->state = i->phys_state = 0;
	wire_pack(&port_info_format, i, mad + SMP_DATA);
	n = world_smp(w, &h, LID_H1, mad);
	if (!n || world_last(w).method != MAD_GET_RESP)
		return -1;
	wire_unpack(&port_info_format, w->got[n - 1].mad + SMP_DATA, i);
	return world_last(w).status;
}
