// SPDX-License-Identifier: BSD-3-Clause
/*
 * The way of data by the tables, beside that of datagrams in the subnet: whatever the tables say,
 * both end at the same port or for the same reason.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "fabric/walk.h"
#include "subnet/carry.h"
#include "subnet/state.h"
#include "subnet_world.h"

enum { ROUNDS = 3000, CHANGES = 6, CLASS = 0x0a, SEND = 3 };
enum { RANDOM_KEYS = 3 };

static const uint16_t keys[RANDOM_KEYS] = {0xffff, 0x8001, 0x0001};

static struct walk_packet packet(
	struct world *w, uint32_t node, uint8_t port, uint16_t dlid, uint16_t pkey)
{
	return (struct walk_packet){.port = port_of(w->s, node, port), .dlid = dlid, .pkey = pkey};
}

static void hops(void **state)
{
	struct world w;
	struct walk_packet p;
	struct walk way;

	(void)state;
	world_begin(&w);
	world_up(&w);
	p = packet(&w, H0, 1, LID_H1, 0xffff);
	p.sl = 9;
	walk(&w.s->t, &p, &way);
	assert_int_equal(way.verdict, WALK_ARRIVES);
	assert_int_equal(way.at, port_of(w.s, H1, 1));
	assert_int_equal(way.hops, 3);
	assert_int_equal(way.hop[0].out, port_of(w.s, H0, 1));
	assert_int_equal(way.hop[0].in, port_of(w.s, S0, 1));
	assert_int_equal(way.hop[1].out, port_of(w.s, S0, 2));
	assert_int_equal(way.hop[2].in, port_of(w.s, H1, 1));
	assert_int_equal(way.hop[2].vl, 9 % 8);
	assert_int_equal(way.mtu, tables_load(&hot_at(w.s, way.hop[0].out)->mtu));
	assert_int_equal(way.epoch, tables_load(&w.s->t.head->epoch));
	p.mtu = way.mtu;
	walk(&w.s->t, &p, &way);
	assert_int_equal(way.verdict, WALK_ARRIVES);
	p.mtu++;
	walk(&w.s->t, &p, &way);
	assert_int_equal(way.verdict, WALK_MTU);
	assert_int_equal(way.at, p.port);
	p.dlid = LID_H0; /* its own: over no link */
	walk(&w.s->t, &p, &way);
	assert_int_equal(way.verdict, WALK_ARRIVES);
	assert_int_equal(way.at, p.port);
	assert_int_equal(way.hops + way.mtu, 0);
	world_end(&w);
}

/* Two switches that send to each other by two links: every hop is another port. */
static void loops(void **state)
{
	struct world w;
	struct walk_packet p;
	struct walk way;

	(void)state;
	world_begin(&w);
	world_up(&w);
	assert_int_equal(subnet_link(w.s, S0, 3, S1, 4), 0);
	for (uint32_t n = S0; n <= S1; n++)
		for (unsigned q = 1; q <= 4; q++) {
			tables_store(&hot_at(w.s, port_of(w.s, n, q))->state, TABLES_ACTIVE);
			tables_store(&hot_at(w.s, port_of(w.s, n, q))->vls, 8);
			tables_store(&hot_at(w.s, port_of(w.s, n, q))->mtu, 5);
		}
	tables_store(&w.s->t.lft[w.s->t.nodes[S0].lft + LID_NOWHERE], (uint8_t)~2u);
	tables_store(&w.s->t.lft[w.s->t.nodes[S1].lft + LID_NOWHERE], (uint8_t)~4u);
	for (uint32_t n = S0; n <= S1; n++)
		tables_store(&w.s->t.nodes[n].lft_top, LID_NOWHERE);
	p = packet(&w, H0, 1, LID_NOWHERE, 0xffff);
	walk(&w.s->t, &p, &way);
	assert_int_equal(way.verdict, WALK_LOOP);
	assert_int_equal(way.hops, WALK_HOPS);
	world_end(&w);
}

static void nowhere(void **state)
{
	struct world w;
	struct walk_packet p = {.dlid = LID_H1};
	struct walk way;

	(void)state;
	world_begin(&w);
	walk(&w.s->t, &p, &way);
	assert_int_equal(way.verdict, WALK_NO_LINK);
	p.port = w.s->t.head->n_ports;
	walk(&w.s->t, &p, &way);
	assert_int_equal(way.verdict, WALK_NO_LINK);
	p = packet(&w, H0, 1, LID_H1, 0);
	walk(&w.s->t, &p, &way); /* links are in INIT */
	assert_int_equal(way.verdict, WALK_NO_LINK);
	world_end(&w);
}

/* ---- beside the subnet ---- */

/* Any port, port 0 of a switch now and then. */
static uint32_t any_port(struct world *w)
{
	return 1 + rand() % (w->s->t.head->n_ports - 1);
}

static void any_key(struct world *w, uint32_t port)
{
	tables_set_pkey(&w->s->t, port, rand() % 2, keys[rand() % RANDOM_KEYS]);
	tables_store(&hot_at(w->s, port)->enforce, rand() % 4);
}

/* Something that an SM, or a cable, may do. */
static void change(struct world *w)
{
	uint32_t port = any_port(w), sw = S0 + rand() % 2;
	uint8_t out = rand() % 6;

	switch (rand() % 8) {
	case 0:
		tables_store(&hot_at(w->s, port)->state, 1 + rand() % 4);
		break;
	case 1:
		any_key(w, port);
		break;
	case 2:
		tables_store(&hot_at(w->s, port)->vls, 1 + rand() % 8);
		break;
	case 3:
		tables_set_sl2vl(
			&w->s->t, sw, rand() % 5, 1 + rand() % 4, (uint64_t)rand() << 33 ^ rand());
		break;
	case 4:
		tables_store(&hot_at(w->s, port)->lid, 1 + rand() % 8);
		tables_store(&hot_at(w->s, port)->lmc, rand() % 2);
		break;
	default:
		tables_store(&w->s->t.lft[w->s->t.nodes[sw].lft + 1 + rand() % 8],
			(uint8_t) ~(out < 5 ? out : TABLES_NO_PORT));
		tables_store(&w->s->t.nodes[sw].lft_top, 8);
		break;
	}
}

/* Why the subnet would drop it. */
static enum subnet_drop drop_of(enum walk_verdict why)
{
	switch (why) {
	case WALK_NO_LINK:
	case WALK_NOT_READY:
		return SUBNET_DROP_LINK;
	case WALK_NO_ROUTE:
	case WALK_STRAY:
		return SUBNET_DROP_LID;
	case WALK_BACK:
	case WALK_LOOP:
		return SUBNET_DROP_LOOP;
	case WALK_NO_VL:
		return SUBNET_DROP_VL;
	default:
		return SUBNET_DROP_PKEY;
	}
}

/* The datagram that arrived, among traps; NULL: none. */
static const struct got *arrived(const struct world *w)
{
	for (unsigned i = 0; i < w->n_got && i < WORLD_GOT; i++)
		if (w->got[i].qp == 1)
			return &w->got[i];
	return NULL;
}

/* A datagram that nobody answers goes the way of p; it must end as the walk has. */
static void follow(
	struct world *w, const struct walk_packet *p, unsigned index, const struct walk *way)
{
	uint32_t node = hot_at(w->s, p->port)->node;
	uint8_t mad[MAD_SIZE] = {1, CLASS, 1, SEND};
	const struct mad_addr to = {.lid = p->dlid, .sl = p->sl, .qpn = 1, .pkey_index = index};
	enum subnet_drop why = drop_of(way->verdict);
	uint64_t before = w->s->drops[why];
	const struct got *got;

	w->n_got = 0;
	assert_int_equal(
		subnet_send(w->s, node, p->port - w->s->t.nodes[node].port0, 1, &to, mad), 0);
	got = arrived(w);
	if (way->verdict != WALK_ARRIVES) {
		assert_null(got);
		assert_int_equal(w->s->drops[why], before + 1);
		return;
	}
	assert_non_null(got);
	assert_int_equal(port_of(w->s, got->node, got->port), way->at);
}

static void as_the_subnet(void **state)
{
	unsigned seen[WALK_PKEY + 1] = {0};
	struct tables ours;

	(void)state;
	srand(7);
	for (int round = 0; round < ROUNDS; round++) {
		struct world w;

		world_begin(&w);
		world_up(&w);
		assert_int_equal(tables_map(&ours, w.s->t.fd), 0);
		for (int i = rand() % CHANGES; i > 0; i--)
			change(&w);
		for (int i = 0; i < 8; i++) {
			uint32_t port = any_port(&w);
			unsigned index = rand() % 2;
			struct walk_packet p = {
				.port = port, .dlid = 1 + rand() % 8, .sl = rand() % 16};
			struct walk way;

			p.pkey = tables_pkey(&w.s->t, port, index);
			if (is_external(w.s, port) || !p.pkey)
				continue;
			walk(&ours, &p, &way);
			seen[way.verdict]++;
			follow(&w, &p, index, &way);
		}
		tables_free(&ours);
		world_end(&w);
	}
	for (int i = 0; i <= WALK_PKEY; i++)
		assert_true(seen[i] || i == WALK_LOOP || i == WALK_MTU);
}

/* ---- the memory of the tables ---- */

static void memory(void **state)
{
	struct world w;
	struct tables ours;
	char word[8] = {0};
	int pipes[2];

	(void)state;
	world_begin(&w);
	assert_int_equal(tables_map(&ours, w.s->t.fd), 0);
	assert_int_equal(ours.head->n_nodes, WORLD_NODES);
	world_up(&w); /* is seen at once */
	assert_int_equal(tables_load(&ours.ports[ours.nodes[H0].port0 + 1].lid), LID_H0);
	assert_ptr_equal(mmap(NULL, ours.size, PROT_READ | PROT_WRITE, MAP_SHARED, w.s->t.fd, 0),
		MAP_FAILED);
	assert_int_equal(pwrite(w.s->t.fd, word, sizeof word, 0), -1);
	assert_int_equal(ftruncate(w.s->t.fd, 0), -1);
	tables_free(&ours);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(tables_map(&ours, pipes[0]), -EINVAL);
	close(pipes[0]);
	close(pipes[1]);
	world_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hops),
		cmocka_unit_test(loops),
		cmocka_unit_test(nowhere),
		cmocka_unit_test(as_the_subnet),
		cmocka_unit_test(memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
