// SPDX-License-Identifier: BSD-3-Clause
#include "sm/route.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sm/attr.h"

enum { HOPS = 64 };

int route_make(struct route *r, struct subnet *s)
{
	*r = (struct route){.s = s, .tree = GRAPH_NONE};
	if (graph_make(&r->g, subnet_tables(s)))
		return -ENOMEM;
	r->places = calloc(TABLES_LIDS, sizeof *r->places);
	r->dirty = calloc(TABLES_LIDS, sizeof *r->dirty);
	r->load = calloc(r->g.n_ports + 1, sizeof *r->load);
	r->ends = calloc(r->g.n + 1, sizeof *r->ends);
	r->flow = calloc(r->g.n + 1, sizeof *r->flow);
	r->column = calloc(r->g.n + 1, sizeof *r->column);
	return r->places && r->dirty && r->load && r->ends && r->flow && r->column ? 0 : -ENOMEM;
}

void route_free(struct route *r)
{
	graph_free(&r->g);
	free(r->places);
	free(r->dirty);
	free(r->load);
	free(r->ends);
	free(r->flow);
	free(r->column);
	*r = (struct route){0};
}

/* Goes to the next block of LIDs, from lid on, that has some to be routed. */
static void next_block(struct route *r, uint32_t lid)
{
	while (lid < TABLES_LIDS && !r->dirty[lid])
		lid++;
	if (lid == TABLES_LIDS) {
		r->work = ROUTE_DONE;
		return;
	}
	r->lid = lid;
	r->block = lid / SMP_LIDS;
	memset(r->column, TABLES_NO_PORT, r->g.n * sizeof *r->column);
	r->work = ROUTE_TREES;
}

/* ---- which LIDs are where ---- */

static void take_links(struct route *r)
{
	graph_apply(&r->g);
	r->tree = GRAPH_NONE;
}

static void no_place(struct route *r, uint16_t lid)
{
	struct route_place *p = &r->places[lid];

	if (p->end && p->first && p->sw != GRAPH_NONE)
		r->ends[p->sw]--;
	p->sw = GRAPH_NONE;
	r->dirty[lid] = true;
}

void route_all(struct route *r, uint16_t top)
{
	graph_look(&r->g);
	take_links(r);
	memset(r->load, 0, r->g.n_ports * sizeof *r->load);
	memset(r->ends, 0, r->g.n * sizeof *r->ends);
	for (unsigned lid = 0; lid < TABLES_LIDS; lid++) {
		r->places[lid] = (struct route_place){.sw = GRAPH_NONE};
		r->dirty[lid] = lid <= (top | (SMP_LIDS - 1));
	}
	r->top = top;
	r->work = ROUTE_PLACE;
	r->at = 0;
}

/* The first port that has a LID keeps it. */
static void put(struct route *r, uint16_t lid, struct route_place place)
{
	if (!lid || lid > r->top || r->places[lid].sw != GRAPH_NONE)
		return;
	r->places[lid] = place;
	r->dirty[lid] = true;
	if (place.end && place.first)
		r->ends[place.sw]++;
}

static uint16_t lid_at(const struct route *r, uint32_t port)
{
	return tables_load(&r->g.t->ports[port].lid);
}

static unsigned n_lids_at(const struct route *r, uint32_t port)
{
	return 1u << tables_load(&r->g.t->ports[port].lmc);
}

/* All LIDs of a port. */
static void put_all(struct route *r, uint32_t port, struct route_place place)
{
	uint16_t lid = lid_at(r, port);

	for (unsigned i = 0; lid && i < n_lids_at(r, port); i++) {
		place.first = !i;
		put(r, lid + i, place);
	}
}

/* A port of a switch, if an adapter or router is at its other end. */
static void put_end(struct route *r, uint32_t sw, uint8_t port, uint32_t end)
{
	if (end && graph_switch(&r->g, end) == GRAPH_NONE)
		put_all(r, end, (struct route_place){.sw = sw, .port = port, .end = true});
}

/* One switch, and what is wired to it. */
static void unit_place(struct route *r)
{
	uint32_t sw = r->at++;

	if (sw >= r->g.n) {
		next_block(r, 0);
		return;
	}
	put_all(r, r->g.t->nodes[r->g.node[sw]].port0, (struct route_place){.sw = sw});
	for (uint32_t at = r->g.first[sw] + 1; at < r->g.first[sw + 1]; at++)
		put_end(r, sw, at - r->g.first[sw], r->g.link[at]);
}

/* An adapter's port that was plugged in may have been elsewhere before. */
static void move_end(struct route *r, uint32_t sw, uint8_t port, uint32_t end)
{
	uint16_t lid;

	if (!end || graph_switch(&r->g, end) != GRAPH_NONE)
		return;
	lid = lid_at(r, end);
	for (unsigned i = 0; lid && i < n_lids_at(r, end) && lid + i <= r->top; i++)
		no_place(r, lid + i);
	put_end(r, sw, port, end);
}

/* ---- what has changed ---- */

/* The entry as it stands, whatever LinearFDBTop says. */
static uint8_t entry(const struct route *r, uint32_t sw, uint16_t lid)
{
	const struct tables *t = r->g.t;

	return ~tables_load(&t->lft[t->nodes[r->g.node[sw]].lft + lid]);
}

/* A link is gone: who was on it needs another way. */
static void lose(struct route *r, uint32_t sw, uint8_t port)
{
	for (unsigned lid = 1; lid <= r->top; lid++) {
		struct route_place *p = &r->places[lid];

		if (p->end && p->sw == sw && p->port == port)
			no_place(r, lid);
		else if (entry(r, sw, lid) == port)
			r->dirty[lid] = true;
	}
}

bool route_compare(struct route *r, uint32_t sw)
{
	bool few = true;

	for (uint32_t at = r->g.first[sw] + 1; at < r->g.first[sw + 1]; at++) {
		uint8_t port = at - r->g.first[sw];
		uint32_t now = graph_now(&r->g, sw, port);

		if (now == r->g.link[at])
			continue;
		r->g.noted[at] = now;
		if (r->g.link[at])
			lose(r, sw, port);
		move_end(r, sw, port, now);
		few &= graph_switch(&r->g, now) == GRAPH_NONE;
	}
	return few;
}

void route_changed(struct route *r)
{
	r->work = ROUTE_FORGET;
	r->at = 0;
}

/* Takes off what the adapters of one switch load the ports with, on their way to a LID. */
static void unload(struct route *r, uint32_t sw, uint16_t lid)
{
	const uint32_t flow = r->ends[sw];

	for (unsigned hop = 0; sw != GRAPH_NONE && hop < HOPS; hop++) {
		uint32_t at = r->g.first[sw] + entry(r, sw, lid);

		if (at >= r->g.first[sw + 1] || r->g.peer[at] == GRAPH_NONE)
			return;
		r->load[at] -= flow < r->load[at] ? flow : r->load[at];
		sw = r->g.peer[at];
	}
}

/* The links of before lead along the way that a LID had. */
static void unit_forget(struct route *r)
{
	while (r->at <= r->top && !(r->dirty[r->at] && r->places[r->at].end))
		r->at++;
	if (r->at > r->top) {
		take_links(r);
		next_block(r, 0);
		return;
	}
	for (uint32_t sw = 0; sw < r->g.n; sw++)
		if (r->ends[sw])
			unload(r, sw, r->at);
	r->at++;
}

/* ---- trees ---- */

static uint8_t choose(const struct route *r, uint32_t sw, uint16_t lid)
{
	const uint8_t *ways = &r->g.ways[r->g.first[sw]];
	const uint32_t *load = &r->load[r->g.first[sw]];
	const unsigned n = r->g.n_ways[sw];
	/* Where nothing is loaded, LIDs still spread. */
	uint8_t best = ways[lid % n];

	for (unsigned i = 0; i < n; i++)
		if (load[ways[i]] < load[best])
			best = ways[i];
	return best;
}

/* The farthest switch first, so that all that comes through a switch is known there. */
static void grow(struct route *r, uint16_t lid)
{
	const struct route_place *place = &r->places[lid];
	const struct graph *g = &r->g;

	for (uint32_t i = 0; i < g->reached; i++)
		r->flow[g->order[i]] = r->ends[g->order[i]];
	for (uint32_t i = g->reached; i-- > 1;) {
		uint32_t sw = g->order[i];
		uint8_t port = choose(r, sw, lid);

		r->column[sw][lid % SMP_LIDS] = port;
		if (!place->end)
			continue;
		r->load[g->first[sw] + port] += r->flow[sw];
		r->flow[g->peer[g->first[sw] + port]] += r->flow[sw];
	}
	r->column[place->sw][lid % SMP_LIDS] = place->port;
}

/* One LID.  Adapters of one switch have LIDs in a row, mostly: they share what the graph found. */
static void unit_tree(struct route *r)
{
	uint32_t sw = r->places[r->lid].sw;

	if (sw != GRAPH_NONE && sw != r->tree)
		graph_tree(&r->g, sw);
	if (sw != GRAPH_NONE) {
		r->tree = sw;
		grow(r, r->lid);
	}
	do
		r->lid++;
	while (r->lid / SMP_LIDS == r->block && !r->dirty[r->lid]);
	if (r->lid / SMP_LIDS != r->block) {
		r->work = ROUTE_WRITE;
		r->at = 0;
	}
}

static void write_block(struct route *r, uint32_t sw)
{
	const uint32_t first = r->block * SMP_LIDS;
	uint8_t data[SMP_DATA_SIZE];
	bool same = true;

	for (unsigned i = 0; i < SMP_LIDS; i++) {
		uint8_t old = entry(r, sw, first + i);

		data[i] = r->dirty[first + i] ? r->column[sw][i] : old;
		same &= data[i] == old;
	}
	if (!same)
		attr_set(r->s, r->g.node[sw], 0, SMP_LFT, r->block, data);
}

static void unit_write(struct route *r)
{
	if (r->at < r->g.n) {
		write_block(r, r->at++);
		return;
	}
	memset(&r->dirty[r->block * SMP_LIDS], false, SMP_LIDS);
	next_block(r, r->lid);
}

bool route_unit(struct route *r)
{
	static void (*const units[])(struct route *) = {
		[ROUTE_PLACE] = unit_place,
		[ROUTE_FORGET] = unit_forget,
		[ROUTE_TREES] = unit_tree,
		[ROUTE_WRITE] = unit_write,
	};

	if (r->work != ROUTE_DONE)
		units[r->work](r);
	return r->work != ROUTE_DONE;
}
