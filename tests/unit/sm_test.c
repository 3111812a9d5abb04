// SPDX-License-Identifier: BSD-3-Clause
/* The built-in subnet manager, on generated topologies. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "sm/attr.h"
#include "sm/sm.h"
#include "topo/generate.h"
#include "topo/netlist.h"
#include "wire/notice.h"

enum { HOPS = 64, TICK_NS = 20000 };

struct fabric {
	struct subnet *s;
	const struct tables *t;
	struct sm *sm;
	struct lids *lids;
	uint32_t n_hosts;
	uint64_t now, tick; /* each look at the clock takes a tick */
	bool real;          /* the clock is the machine's */
	unsigned *heard;    /* events of each host's port 1 */
	unsigned reregisters;
	unsigned traps, taken;
};

static bool deliver(void *arg, uint32_t node, uint8_t port, unsigned qp,
	const struct mad_addr *from, const uint8_t mad[MAD_SIZE])
{
	struct fabric *f = arg;
	uint8_t reply[MAD_SIZE];

	(void)from;
	f->traps += qp == 0 && mad[3] == MAD_TRAP;
	if (!f->sm || qp || !sm_take(f->sm, node, port, mad, reply))
		return false;
	f->taken++;
	assert_int_equal(reply[3], mad[3] == MAD_TRAP ? MAD_TRAP_REPRESS : MAD_GET_RESP);
	return true;
}

static void event(void *arg, uint32_t node, uint8_t port, unsigned events)
{
	struct fabric *f = arg;

	(void)port;
	if (!f->heard || node >= f->n_hosts)
		return;
	f->heard[node] |= events;
	f->reregisters += (events & SUBNET_CLIENT_REREGISTER) != 0;
}

static uint64_t fake_now(void *arg)
{
	struct fabric *f = arg;

	return f->real ? clock_ns() : (f->now += f->tick);
}

static void make_sm(struct fabric *f, bool off)
{
	const struct sm_ops ops = {fake_now, f};

	assert_int_equal(sm_create(&f->sm, f->s, f->lids, &ops, off), 0);
}

/* On a topology, with the LIDs of before, or NULL. */
static void begin_on(struct fabric *f, const struct topo *t, const struct lids *before)
{
	const struct subnet_ops ops = {deliver, event, fake_now, f};

	*f = (struct fabric){.now = NSEC_PER_SEC, .tick = TICK_NS};
	assert_int_equal(subnet_create(&f->s, t, &ops), 0);
	f->n_hosts = t->n_cas;
	f->t = subnet_tables(f->s);
	f->heard = calloc(f->n_hosts, sizeof *f->heard);
	f->lids = calloc(1, sizeof *f->lids);
	assert_non_null(f->heard);
	assert_non_null(f->lids);
	if (before)
		*f->lids = *before;
	make_sm(f, false);
}

static void begin(struct fabric *f, const char *spec, const struct lids *before)
{
	char error[TOPO_ERROR];
	struct topo t;

	assert_int_equal(generate(&t, spec, error), 0);
	begin_on(f, &t, before);
	topo_free(&t);
}

static void end(struct fabric *f)
{
	sm_free(f->sm);
	subnet_free(f->s);
	free(f->heard);
	free(f->lids);
}

/* Lets it work; every step keeps its time. */
static unsigned settle(struct fabric *f)
{
	unsigned steps = 0;
	bool more = true;

	for (; more; steps++) {
		uint64_t before = f->now;

		assert_true(steps < 1000000);
		more = sm_step(f->sm, SM_STEP_NS);
		/* The clock ticks once more before its first unit. */
		assert_true(f->now - before <= SM_STEP_NS + f->tick);
	}
	return steps;
}

static uint32_t port_of(const struct fabric *f, uint32_t node, uint8_t port)
{
	return f->t->nodes[node].port0 + port;
}

static uint16_t lid_of(const struct fabric *f, uint32_t node)
{
	return tables_load(&f->t->ports[port_of(f, node, node >= f->n_hosts ? 0 : 1)].lid);
}

static uint32_t peer_of(const struct fabric *f, uint32_t port)
{
	return tables_load(&f->t->ports[port].peer);
}

/* ---- walks ---- */

/* Links from each node to one, in *hops of all nodes; UINT32_MAX: unreachable. */
static void measure(const struct fabric *f, uint32_t to, uint32_t *hops)
{
	uint32_t *queue = calloc(f->t->head->n_nodes, sizeof *queue), n = 1;

	assert_non_null(queue);
	memset(hops, 0xff, f->t->head->n_nodes * sizeof *hops);
	queue[0] = to;
	hops[to] = 0;
	for (uint32_t i = 0; i < n; i++)
		for (unsigned p = 1; p <= f->t->nodes[queue[i]].n_ports; p++) {
			uint32_t peer = peer_of(f, port_of(f, queue[i], p));
			uint32_t node = f->t->ports[peer].node;

			/* Adapters pass nothing on. */
			if (!peer || hops[node] != UINT32_MAX || (i && queue[i] < f->n_hosts))
				continue;
			hops[node] = hops[queue[i]] + 1;
			queue[n++] = node;
		}
	free(queue);
}

/* How many links a packet to lid crosses from a host; 0: it does not come there.  load: may be
 * NULL; counts what each port sends. */
static unsigned walk(const struct fabric *f, uint32_t host, uint16_t lid, uint32_t *load)
{
	uint32_t at = port_of(f, host, 1);

	for (unsigned hop = 1; hop < HOPS; hop++) {
		uint32_t in = peer_of(f, at);
		const struct tables_node *n = &f->t->nodes[f->t->ports[in].node];
		uint8_t port;

		if (!in || tables_load(&f->t->ports[at].state) != PORT_ACTIVE)
			return 0;
		if (n->kind != TABLES_SWITCH)
			return tables_owns_lid(&f->t->ports[in], lid) ? hop : 0;
		port = tables_route(f->t, n, lid);
		if (port == 0)
			return tables_owns_lid(&f->t->ports[n->port0], lid) ? hop : 0;
		if (port > n->n_ports)
			return 0;
		at = n->port0 + port;
		if (load)
			load[at]++;
	}
	return 0;
}

/* From every host to every each-th node on a shortest way, wherever there is one. */
static void check_walks(const struct fabric *f, unsigned each, uint32_t *load)
{
	uint32_t *hops = calloc(f->t->head->n_nodes, sizeof *hops);

	assert_non_null(hops);
	for (uint32_t to = 0; to < f->t->head->n_nodes; to += each) {
		measure(f, to, hops);
		for (uint32_t from = 0; from < f->n_hosts; from++) {
			if (from == to)
				continue;
			assert_int_equal(
				walk(f, from, lid_of(f, to), to < f->n_hosts ? load : NULL),
				hops[from] == UINT32_MAX ? 0 : hops[from]);
		}
	}
	free(hops);
}

static void check_ports(const struct fabric *f)
{
	for (uint32_t port = 1; port < f->t->head->n_ports; port++) {
		const struct tables_port *p = &f->t->ports[port];

		if (!peer_of(f, port))
			continue;
		assert_int_equal(tables_load(&p->state), PORT_ACTIVE);
		assert_int_equal(tables_load(&p->mtu), 5);
		assert_int_equal(tables_load(&p->vls), 8);
		assert_int_equal(tables_pkey(f->t, port, 0), 0xffff);
	}
}

static struct port_info port_info(const struct fabric *f, uint32_t node, uint8_t port)
{
	uint8_t data[SMP_DATA_SIZE];
	struct port_info i = {0};

	assert_true(attr_get(f->s, node, node >= f->n_hosts ? 0 : port, SMP_PORT_INFO, port, data));
	wire_unpack(&port_info_format, data, &i);
	return i;
}

static void set_port(const struct fabric *f, uint32_t node, uint8_t port, struct port_info i)
{
	uint8_t data[SMP_DATA_SIZE] = {0};

	i.phys_state = 0;
	wire_pack(&port_info_format, &i, data);
	assert_true(attr_set(f->s, node, node >= f->n_hosts ? 0 : port, SMP_PORT_INFO, port, data));
}

/* The most and the least that links between switches carry in one direction. */
static void spread(const struct fabric *f, const uint32_t *load, uint32_t *least, uint32_t *most)
{
	*least = UINT32_MAX;
	*most = 0;
	for (uint32_t port = 1; port < f->t->head->n_ports; port++) {
		uint32_t peer = peer_of(f, port);

		if (!peer || f->t->ports[port].node < f->n_hosts ||
			f->t->ports[peer].node < f->n_hosts)
			continue;
		*least = load[port] < *least ? load[port] : *least;
		*most = load[port] > *most ? load[port] : *most;
	}
}

/* ---- tests ---- */

/* most / least, in tenths, that links between switches may differ by; 0: it is not looked at. */
static const struct {
	const char *spec;
	unsigned balance;
} shapes[] = {
	{"ib:4", 0},
	{"ft2:8,6,4", 11},
	{"ft3:4", 14},
	{"ft3:6", 14},
	{"torus:4x4x2,2", 0},
	{"torus:3x3x3", 0},
	{"dragonfly:2,4,2", 0},
};

static void everybody_reaches_everybody(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
		struct fabric f;
		uint32_t *load, least, most;

		begin(&f, shapes[i].spec, NULL);
		settle(&f);
		load = calloc(f.t->head->n_ports, sizeof *load);
		assert_non_null(load);
		check_walks(&f, 1, load);
		check_ports(&f);
		spread(&f, load, &least, &most);
		if (shapes[i].balance)
			assert_true(most * 10 <= least * shapes[i].balance);
		free(load);
		end(&f);
	}
}

static void what_a_port_gets(void **state)
{
	struct fabric f;
	struct port_info i;

	(void)state;
	begin(&f, "ft2:4,2,2", NULL);
	settle(&f);
	for (uint32_t host = 0; host < f.n_hosts; host++) {
		i = port_info(&f, host, 1);
		assert_int_equal(i.lid, host + 1);
		assert_int_equal(i.lmc, 0);
		assert_int_equal(i.sm_lid, f.n_hosts + 1);
		assert_int_equal(i.sm_sl, 0);
		assert_int_equal(i.subnet_timeout, 18);
		assert_int_equal(i.phys_state, PHYS_LINK_UP);
		assert_int_equal(f.heard[host] & ~(unsigned)SUBNET_PKEY_CHANGE,
			SUBNET_PORT_ACTIVE | SUBNET_LID_CHANGE | SUBNET_SM_CHANGE |
				SUBNET_CLIENT_REREGISTER);
		assert_int_equal(tables_sl2vl(f.t, host, 0, 1), 0x0123456701234567);
	}
	assert_int_equal(f.reregisters, f.n_hosts);
	assert_int_equal(sm_next(f.sm), 0);
	end(&f);
}

static void same_lids_after_a_restart(void **state)
{
	struct lids *saved = calloc(1, sizeof *saved);
	char error[TOPO_ERROR], *text;
	uint16_t old[64];
	struct fabric f;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	(void)state;
	assert_non_null(saved);
	/* H5 has had 700, and S0 the LID that H0 would get. */
	assert_int_equal(lids_claim(saved, 0x10000b, 700, 0), 0);
	assert_int_equal(lids_claim(saved, 0x200000, 1, 0), 0);
	begin(&f, "ft2:8,6,4", saved);
	settle(&f);
	assert_int_equal(lid_of(&f, 5), 700);
	assert_int_equal(lid_of(&f, f.n_hosts), 1);
	assert_int_equal(lid_of(&f, 0), 2);
	assert_int_equal(lid_of(&f, 4), 6);
	assert_int_equal(lid_of(&f, 6), 7);
	check_walks(&f, 1, NULL);
	for (uint32_t node = 0; node < f.t->head->n_nodes; node++)
		old[node] = lid_of(&f, node);
	assert_int_equal(lids_write(f.lids, file), 0);
	end(&f);

	fclose(file);
	memset(saved, 0, sizeof *saved);
	file = fmemopen(text, size, "r");
	assert_int_equal(lids_read(saved, file, "lab.lids", error), 0);
	fclose(file);
	begin(&f, "ft2:8,6,4", saved);
	settle(&f);
	for (uint32_t node = 0; node < f.t->head->n_nodes; node++)
		assert_int_equal(lid_of(&f, node), old[node]);
	assert_int_equal(lid_of(&f, 5), 700);
	assert_int_equal(lid_of(&f, f.n_hosts), 1);
	end(&f);
	free(saved);
	free(text);
}

static uint8_t route(const struct fabric *f, uint32_t node, uint16_t lid)
{
	return tables_route(f->t, &f->t->nodes[node], lid);
}

static void a_cut_link(void **state)
{
	struct fabric f;
	uint32_t leaf, others = 0;
	uint8_t before[256], was;

	(void)state;
	begin(&f, "ft2:8,6,4", NULL);
	settle(&f);
	leaf = f.n_hosts;
	for (uint16_t lid = 1; lid <= f.t->head->n_nodes; lid++)
		before[lid] = route(&f, leaf, lid);
	/* Leaf 0 to spine 0. */
	assert_int_equal(subnet_unlink(f.s, leaf, 5), 0);
	assert_int_equal(sm_next(f.sm), 1);
	settle(&f);
	check_walks(&f, 1, NULL);
	check_ports(&f);
	for (uint16_t lid = 1; lid <= f.t->head->n_nodes; lid++) {
		was = before[lid];
		assert_int_not_equal(route(&f, leaf, lid), 5);
		others += was != 5 && route(&f, leaf, lid) != was;
	}
	assert_int_equal(others, 0);
	assert_int_equal(subnet_relink(f.s, leaf, 5), 0);
	settle(&f);
	check_ports(&f);
	check_walks(&f, 1, NULL);
	for (uint16_t lid = 1; lid <= f.t->head->n_nodes; lid++)
		assert_int_equal(route(&f, leaf, lid), before[lid]);
	assert_int_equal(f.reregisters, f.n_hosts);
	end(&f);
}

static void a_host_unplugged_and_moved(void **state)
{
	struct fabric f;
	uint16_t lid;

	(void)state;
	begin(&f, "ft2:8,5,4", NULL);
	settle(&f);
	lid = lid_of(&f, 0);
	assert_int_equal(subnet_unlink(f.s, 0, 1), 0);
	settle(&f);
	for (uint32_t sw = f.n_hosts; sw < f.t->head->n_nodes; sw++)
		assert_int_equal(route(&f, sw, lid), TABLES_NO_PORT);
	/* To a spine. */
	assert_int_equal(subnet_link(f.s, 0, 1, f.n_hosts + 5, 8), 0);
	settle(&f);
	assert_int_equal(lid_of(&f, 0), lid);
	check_ports(&f);
	check_walks(&f, 1, NULL);
	end(&f);
}

static struct switch_info switch_info(const struct fabric *f, uint32_t node)
{
	uint8_t data[SMP_DATA_SIZE];
	struct switch_info i = {0};

	assert_true(attr_get(f->s, node, 0, SMP_SWITCH_INFO, 0, data));
	wire_unpack(&switch_info_format, data, &i);
	return i;
}

/* PortStateChange is a bit that the SM clears once it has seen to what has changed. */
static void port_state_change_is_cleared(void **state)
{
	static const bool up[] = {false, true};
	struct fabric f;
	uint32_t leaf, spine;

	(void)state;
	begin(&f, "ft2:8,6,4", NULL);
	settle(&f);
	leaf = f.n_hosts;
	spine = f.t->ports[peer_of(&f, port_of(&f, leaf, 5))].node;
	assert_int_equal(switch_info(&f, leaf).port_state_change, 0);
	for (int i = 0; i < 2; i++) {
		uint16_t top = switch_info(&f, leaf).lft_top;

		assert_int_equal(
			up[i] ? subnet_relink(f.s, leaf, 5) : subnet_unlink(f.s, leaf, 5), 0);
		assert_int_equal(switch_info(&f, leaf).port_state_change, 1);
		assert_int_equal(switch_info(&f, spine).port_state_change, 1);
		settle(&f);
		assert_int_equal(switch_info(&f, leaf).lft_top, top);
		assert_int_equal(switch_info(&f, leaf).port_state_change, 0);
		assert_int_equal(switch_info(&f, spine).port_state_change, 0);
	}
	end(&f);
}

/* Somebody else's LinearFDBTop does not stay. */
static void lft_top_is_put_right(void **state)
{
	uint8_t data[SMP_DATA_SIZE] = {0};
	struct switch_info i;
	struct fabric f;
	uint16_t top;

	(void)state;
	begin(&f, "ft2:4,2,2", NULL);
	settle(&f);
	i = switch_info(&f, f.n_hosts);
	top = i.lft_top;
	i.lft_top = 1;
	wire_pack(&switch_info_format, &i, data);
	assert_true(attr_set(f.s, f.n_hosts, 0, SMP_SWITCH_INFO, 0, data));
	assert_int_equal(switch_info(&f, f.n_hosts).lft_top, 1);
	settle(&f);
	assert_int_equal(switch_info(&f, f.n_hosts).lft_top, top);
	check_walks(&f, 1, NULL);
	end(&f);
}

/* A host that had no link, and so no LID, gets the highest LID of all when it is plugged in. */
static void a_host_plugged_in_late(void **state)
{
	struct fabric f;
	uint16_t top;

	(void)state;
	begin(&f, "ft2:8,5,4", NULL);
	assert_int_equal(subnet_unlink(f.s, 0, 1), 0);
	settle(&f);
	assert_int_equal(lid_of(&f, 0), 0);
	top = switch_info(&f, f.n_hosts).lft_top;
	assert_int_equal(subnet_relink(f.s, 0, 1), 0);
	settle(&f);
	assert_true(lid_of(&f, 0) > top);
	check_ports(&f);
	check_walks(&f, 1, NULL);
	end(&f);
}

/* Two leaves, two spines, three hosts, and LMCs of ports. */
static const char lmc_net[] = "Switch 4 \"l0\" # \"l0\" enhanced port 0 lid 0 lmc 1\n"
			      "[1] \"h0\"[1]\n[2] \"h1\"[1]\n[3] \"s0\"[1]\n[4] \"s1\"[1]\n\n"
			      "Switch 4 \"l1\"\n[1] \"h2\"[1]\n[3] \"s0\"[2]\n[4] \"s1\"[2]\n\n"
			      "Switch 2 \"s0\"\n[1] \"l0\"[3]\n[2] \"l1\"[3]\n\n"
			      "Switch 2 \"s1\"\n[1] \"l0\"[4]\n[2] \"l1\"[4]\n\n"
			      "Hca 1 \"h0\"\n[1] \"l0\"[1] # lid 0 lmc 2\n\n"
			      "Hca 1 \"h1\"\n[1] \"l0\"[2]\n\n"
			      "Hca 1 \"h2\"\n[1] \"l1\"[1] # lid 16 lmc 3\n";

enum { L0 = 3, L1, SPINE0, SPINE1 };

static void begin_lmc(struct fabric *f, const struct lids *before)
{
	char error[TOPO_ERROR];
	struct netlist n;

	assert_int_equal(netlist_parse(&n, "net", lmc_net, strlen(lmc_net), error), 0);
	begin_on(f, &n.topo, before);
	netlist_free(&n);
	settle(f);
}

/* What the netlist asks for, wherever the LIDs are, and each of them reached from all hosts. */
static void check_lmcs(const struct fabric *f)
{
	static const uint8_t lmcs[] = {2, 0, 3, 1, 0, 0, 0};
	uint8_t taken[64] = {0};

	for (uint32_t node = 0; node < sizeof lmcs; node++) {
		uint32_t port = port_of(f, node, node >= f->n_hosts ? 0 : 1);
		uint16_t base = lid_of(f, node);

		assert_int_equal(tables_load(&f->t->ports[port].lmc), lmcs[node]);
		assert_int_equal(base & ((1 << lmcs[node]) - 1), 0);
		assert_in_range(base, 1, sizeof taken - 9);
		for (uint16_t lid = base; lid < base + (1 << lmcs[node]); lid++) {
			assert_int_equal(taken[lid]++, 0);
			for (uint32_t from = 0; from < f->n_hosts; from++)
				if (from != node)
					assert_true(walk(f, from, lid, NULL));
		}
	}
}

static void lmcs_of_a_netlist(void **state)
{
	struct lids *saved = calloc(1, sizeof *saved);
	char error[TOPO_ERROR], *text;
	unsigned by_spine[2] = {0};
	uint16_t lids[7];
	struct fabric f;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	(void)state;
	assert_non_null(saved);
	begin_lmc(&f, NULL);
	check_lmcs(&f);
	assert_int_equal(lid_of(&f, 2), 16); /* as it asks for */
	/* That is what they are for: ways of one port. */
	for (uint16_t lid = 16; lid < 24; lid++)
		by_spine[route(&f, L0, lid) - 3]++;
	assert_int_equal(by_spine[0], 4);
	assert_int_equal(by_spine[1], 4);
	for (uint32_t node = 0; node < 7; node++)
		lids[node] = lid_of(&f, node);
	assert_int_equal(lids_write(f.lids, file), 0);
	end(&f);
	fclose(file);
	assert_non_null(strstr(text, " 0x0010 0x0017\n"));

	file = fmemopen(text, size, "r");
	assert_int_equal(lids_read(saved, file, "lab.lids", error), 0);
	fclose(file);
	begin_lmc(&f, saved);
	check_lmcs(&f);
	for (uint32_t node = 0; node < 7; node++)
		assert_int_equal(lid_of(&f, node), lids[node]);
	end(&f);
	/* What does not go with the netlist's LMC is given anew. */
	assert_int_equal(lids_claim(saved, 0x100001, 33, 0), 0);
	begin_lmc(&f, saved);
	check_lmcs(&f);
	end(&f);
	free(saved);
	free(text);
}

/* LIDs that another SM gave stay where they go with the LMC. */
static void lmcs_come_back(void **state)
{
	static const struct {
		uint32_t node;
		uint16_t lid;
		bool stays;
	} given[] = {{0, 33, false}, {1, 40, true}, {2, 24, true}};
	struct fabric f;

	(void)state;
	begin_lmc(&f, NULL);
	sm_issm_opened(f.sm);
	for (int i = 0; i < 3; i++) {
		struct port_info info = port_info(&f, given[i].node, 1);

		info.lid = given[i].lid;
		info.lmc = 0;
		info.state = PORT_NOP;
		set_port(&f, given[i].node, 1, info);
	}
	sm_issm_closed(f.sm);
	f.now += NSEC_PER_SEC;
	settle(&f);
	check_lmcs(&f);
	for (int i = 0; i < 3; i++)
		assert_int_equal(lid_of(&f, given[i].node) == given[i].lid, given[i].stays);
	end(&f);
}

/* All LIDs of a port go the same new way, and move with it. */
static void lmcs_and_links(void **state)
{
	struct fabric f;

	(void)state;
	begin_lmc(&f, NULL);
	assert_int_equal(subnet_unlink(f.s, L0, 3), 0);
	settle(&f);
	check_lmcs(&f);
	assert_int_equal(subnet_relink(f.s, L0, 3), 0);
	settle(&f);
	check_lmcs(&f);
	assert_int_equal(subnet_unlink(f.s, 0, 1), 0);
	assert_int_equal(subnet_link(f.s, 0, 1, L1, 2), 0);
	settle(&f);
	check_lmcs(&f);
	assert_int_equal(subnet_unlink(f.s, 2, 1), 0);
	assert_int_equal(subnet_link(f.s, 2, 1, L0, 1), 0);
	settle(&f);
	check_lmcs(&f);
	assert_int_equal(subnet_clear(f.s, 2, 1), 0);
	assert_int_equal(subnet_relink(f.s, 2, 1), 0);
	settle(&f);
	check_lmcs(&f);
	assert_int_equal(lid_of(&f, 2), 16);
	/* One of its own LIDs, as the console may give it, and fewer of them. */
	for (uint16_t lid = 16; lid < 18; lid++) {
		struct port_info i = port_info(&f, 2, 1);

		i.lid = lid;
		i.lmc = 0;
		i.state = PORT_NOP;
		set_port(&f, 2, 1, i);
		settle(&f);
		check_lmcs(&f);
		assert_int_equal(lid_of(&f, 2), 16);
	}
	end(&f);
}

/* What a foreign SM leaves when it dies in the middle: some LIDs, its own LID, half of the states.
 */
static void sweep_by_halves(struct fabric *f)
{
	uint8_t data[SMP_DATA_SIZE];
	struct port_info i = port_info(f, 1, 1);

	i.lid = 100;
	i.sm_lid = 4;
	i.state = 0;
	i.mkey = 42;
	i.mkey_protect = 2;
	set_port(f, 1, 1, i);
	i = port_info(f, 2, 1); /* down, then up to ARMED */
	i.state = PORT_DOWN;
	set_port(f, 2, 1, i);
	i = port_info(f, 2, 1);
	assert_int_equal(i.state, PORT_INIT);
	i.state = PORT_ARMED;
	i.neighbor_mtu = 1;
	set_port(f, 2, 1, i);
	memset(data, 1, sizeof data);
	assert_true(attr_set(f->s, f->n_hosts, 0, SMP_LFT, 0, data));
	memset(data, 0, sizeof data);
	data[0] = 0x80;
	data[1] = 1;
	assert_true(attr_set(f->s, 3, 1, SMP_PKEY_TABLE, 0, data));
	assert_true(attr_set(f->s, 3, 1, SMP_SL2VL, 0, data));
}

static void gives_way_and_comes_back(void **state)
{
	struct fabric f;
	uint64_t closed, epoch;

	(void)state;
	begin(&f, "ft2:8,6,4", NULL);
	settle(&f);
	sm_issm_opened(f.sm);
	sm_issm_opened(f.sm);
	sweep_by_halves(&f);
	sm_issm_closed(f.sm);
	epoch = tables_load(&f.t->head->epoch);
	assert_false(sm_step(f.sm, SM_STEP_NS));
	assert_int_equal(sm_next(f.sm), 0);
	sm_issm_closed(f.sm);
	closed = f.now;
	assert_int_equal(sm_next(f.sm), closed + NSEC_PER_SEC);
	assert_false(sm_step(f.sm, SM_STEP_NS));
	assert_int_equal(tables_load(&f.t->head->epoch), epoch);
	f.now = closed + NSEC_PER_SEC;
	settle(&f);
	check_ports(&f);
	check_walks(&f, 1, NULL);
	assert_int_equal(lid_of(&f, 1), 100);
	assert_int_equal(lid_of(&f, 0), 1);
	assert_int_equal(lid_of(&f, 2), 3);
	assert_int_equal(lids_of(f.lids, 0x100003), 100);
	assert_int_equal(port_info(&f, 1, 1).sm_lid, f.n_hosts + 1);
	assert_int_equal(port_info(&f, 1, 1).mkey, 0);
	assert_int_equal(tables_sl2vl(f.t, 3, 0, 1), 0x0123456701234567);
	assert_int_equal(f.reregisters, 2 * f.n_hosts);
	end(&f);
}

/* In the middle of its own work, too, and at each of its steps. */
static void gives_way_at_any_step(void **state)
{
	(void)state;
	for (unsigned n = 0, more = 1; more; n += 3) {
		struct fabric f;
		uint64_t epoch;

		begin(&f, "ft3:4", NULL);
		for (unsigned i = 0; i < n; i++)
			more = sm_step(f.sm, 5 * TICK_NS);
		sm_issm_opened(f.sm);
		epoch = tables_load(&f.t->head->epoch);
		assert_false(sm_step(f.sm, SM_STEP_NS));
		assert_int_equal(tables_load(&f.t->head->epoch), epoch);
		sm_issm_closed(f.sm);
		f.now += NSEC_PER_SEC;
		settle(&f);
		check_ports(&f);
		check_walks(&f, 1, NULL);
		end(&f);
	}
}

static void off_leaves_init(void **state)
{
	struct fabric f;

	(void)state;
	begin(&f, "ib:4", NULL);
	sm_free(f.sm);
	make_sm(&f, true);
	assert_int_equal(sm_next(f.sm), 0);
	assert_false(sm_step(f.sm, SM_STEP_NS));
	sm_issm_opened(f.sm);
	sm_issm_closed(f.sm);
	f.now += 2 * NSEC_PER_SEC;
	assert_false(sm_step(f.sm, SM_STEP_NS));
	assert_int_equal(port_info(&f, 0, 1).state, PORT_INIT);
	assert_int_equal(port_info(&f, 0, 1).lid, 0);
	end(&f);
}

static bool ask_sm(
	struct fabric *f, uint32_t node, uint8_t method, struct sm_info *i, uint16_t *status)
{
	struct smp_hdr h = {.base_version = 1,
		.mgmt_class = MAD_CLASS_SUBN_LID,
		.class_version = 1,
		.method = method,
		.tid = 7,
		.attr = SMP_SM_INFO};
	uint8_t mad[MAD_SIZE] = {0}, reply[MAD_SIZE];

	wire_pack(&smp_hdr_format, &h, mad);
	if (!sm_take(f->sm, node, 0, mad, reply))
		return false;
	wire_unpack(&smp_hdr_format, reply, &h);
	wire_unpack(&sm_info_format, reply + SMP_DATA, i);
	assert_int_equal(h.method, MAD_GET_RESP);
	assert_int_equal(h.tid, 7);
	*status = h.status;
	return true;
}

static void answers_as_master(void **state)
{
	struct sm_info first = {0}, second = {0};
	struct fabric f;
	uint16_t status;

	(void)state;
	begin(&f, "ib:4", NULL);
	settle(&f);
	assert_true(ask_sm(&f, 4, MAD_GET, &first, &status));
	assert_int_equal(status, SMP_OK);
	assert_int_equal(first.state, SM_MASTER);
	assert_int_equal(first.priority, 0);
	assert_int_equal(first.guid, 0x200000);
	assert_true(ask_sm(&f, 4, MAD_GET, &second, &status));
	assert_true(second.act_count > first.act_count);
	assert_true(ask_sm(&f, 4, MAD_SET, &second, &status));
	assert_int_equal(status, SMP_UNSUPPORTED);
	assert_false(ask_sm(&f, 5, MAD_GET, &second, &status));
	sm_issm_opened(f.sm);
	assert_false(ask_sm(&f, 4, MAD_GET, &second, &status));
	end(&f);
}

static void takes_traps(void **state)
{
	struct fabric f;

	(void)state;
	begin(&f, "ib:4", NULL);
	settle(&f);
	assert_int_equal(subnet_unlink(f.s, 0, 1), 0);
	assert_true(f.traps >= 1);
	assert_int_equal(f.taken, f.traps);
	end(&f);
}

/* A rack full of hosts and then some: what a real clock says is printed, only its sanity checked.
 */
static void a_large_tree(void **state)
{
	uint64_t begun = clock_ns(), longest = 0, steps = 0, took;
	struct fabric f;
	bool more = true;

	(void)state;
	begin(&f, "ft3:36", NULL);
	f.tick = 0;
	f.real = true;
	took = clock_ns() - begun;
	print_message("ft3:36 made in %u ms\n", (unsigned)(took / NSEC_PER_MSEC));
	begun = clock_ns();
	for (; more; steps++) {
		uint64_t before = clock_ns();

		more = sm_step(f.sm, SM_STEP_NS);
		took = clock_ns() - before;
		longest = took > longest ? took : longest;
	}
	print_message("up in %u ms, %u steps, the longest %u us\n",
		(unsigned)((clock_ns() - begun) / NSEC_PER_MSEC), (unsigned)steps,
		(unsigned)(longest / NSEC_PER_USEC));
	check_ports(&f);
	check_walks(&f, 1501, NULL);
	assert_int_equal(lid_of(&f, 0), 1);
	assert_int_equal(lid_of(&f, f.t->head->n_nodes - 1), f.t->head->n_nodes);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everybody_reaches_everybody),
		cmocka_unit_test(what_a_port_gets),
		cmocka_unit_test(same_lids_after_a_restart),
		cmocka_unit_test(lmcs_of_a_netlist),
		cmocka_unit_test(lmcs_come_back),
		cmocka_unit_test(lmcs_and_links),
		cmocka_unit_test(a_cut_link),
		cmocka_unit_test(a_host_unplugged_and_moved),
		cmocka_unit_test(a_host_plugged_in_late),
		cmocka_unit_test(port_state_change_is_cleared),
		cmocka_unit_test(lft_top_is_put_right),
		cmocka_unit_test(gives_way_and_comes_back),
		cmocka_unit_test(gives_way_at_any_step),
		cmocka_unit_test(off_leaves_init),
		cmocka_unit_test(answers_as_master),
		cmocka_unit_test(takes_traps),
		cmocka_unit_test(a_large_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
