// SPDX-License-Identifier: BSD-3-Clause
#include "sm/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void count(struct graph *g)
{
	for (uint32_t i = 0; i < g->t->head->n_nodes; i++)
		if (g->t->nodes[i].kind == TABLES_SWITCH) {
			g->n++;
			g->n_ports += g->t->nodes[i].n_ports + 1u;
		}
}

static bool allocate(struct graph *g)
{
	g->of_node = calloc(g->t->head->n_nodes + 1, sizeof *g->of_node);
	g->node = calloc(g->n + 1, sizeof *g->node);
	g->first = calloc(g->n + 1, sizeof *g->first);
	g->order = calloc(g->n + 1, sizeof *g->order);
	g->hops = calloc(g->n + 1, sizeof *g->hops);
	g->n_ways = calloc(g->n + 1, sizeof *g->n_ways);
	g->noted = calloc(g->n_ports + 1, sizeof *g->noted);
	g->link = calloc(g->n_ports + 1, sizeof *g->link);
	g->peer = calloc(g->n_ports + 1, sizeof *g->peer);
	g->ways = calloc(g->n_ports + 1, sizeof *g->ways);
	return g->of_node && g->node && g->first && g->order && g->hops && g->n_ways && g->noted &&
	       g->link && g->peer && g->ways;
}

static void number_switches(struct graph *g)
{
	uint32_t sw = 0;

	for (uint32_t i = 0; i < g->t->head->n_nodes; i++) {
		g->of_node[i] = GRAPH_NONE;
		if (g->t->nodes[i].kind != TABLES_SWITCH)
			continue;
		g->of_node[i] = sw;
		g->node[sw] = i;
		g->first[sw + 1] = g->first[sw] + g->t->nodes[i].n_ports + 1;
		sw++;
	}
}

int graph_make(struct graph *g, const struct tables *t)
{
	*g = (struct graph){.t = t};
	count(g);
	if (!allocate(g))
		return -ENOMEM;
	number_switches(g);
	graph_apply(g);
	return 0;
}

void graph_free(struct graph *g)
{
	free(g->of_node);
	free(g->node);
	free(g->first);
	free(g->order);
	free(g->hops);
	free(g->n_ways);
	free(g->noted);
	free(g->link);
	free(g->peer);
	free(g->ways);
	*g = (struct graph){0};
}

uint32_t graph_now(const struct graph *g, uint32_t sw, uint8_t port)
{
	return tables_load(&g->t->ports[g->t->nodes[g->node[sw]].port0 + port].peer);
}

void graph_look(struct graph *g)
{
	for (uint32_t sw = 0; sw < g->n; sw++)
		for (uint32_t at = g->first[sw]; at < g->first[sw + 1]; at++)
			g->noted[at] = graph_now(g, sw, at - g->first[sw]);
}

uint32_t graph_switch(const struct graph *g, uint32_t port)
{
	return port ? g->of_node[g->t->ports[port].node] : GRAPH_NONE;
}

/* The number that a port has on its switch. */
static uint8_t number(const struct graph *g, uint32_t sw, uint32_t port)
{
	return port - g->t->nodes[g->node[sw]].port0;
}

/* The switch at the other end, if that end knows of the link, too. */
static uint32_t agreed(const struct graph *g, uint32_t sw, uint32_t at)
{
	uint32_t port = g->t->nodes[g->node[sw]].port0 + at - g->first[sw];
	uint32_t peer = graph_switch(g, g->noted[at]);

	if (peer == GRAPH_NONE)
		return GRAPH_NONE;
	return g->noted[g->first[peer] + number(g, peer, g->noted[at])] == port ? peer : GRAPH_NONE;
}

void graph_apply(struct graph *g)
{
	memcpy(g->link, g->noted, g->n_ports * sizeof *g->link);
	for (uint32_t sw = 0; sw < g->n; sw++)
		for (uint32_t at = g->first[sw]; at < g->first[sw + 1]; at++)
			g->peer[at] = agreed(g, sw, at);
}

/* One way from switch `from`, by its port, ends at a switch that is `hops` away. */
static void offer(struct graph *g, uint32_t from, uint32_t port, uint16_t hops)
{
	if (g->hops[from] == GRAPH_FAR) {
		g->hops[from] = hops + 1;
		g->order[g->reached++] = from;
	}
	if (g->hops[from] == hops + 1)
		g->ways[g->first[from] + g->n_ways[from]++] = number(g, from, port);
}

static void visit(struct graph *g, uint32_t sw)
{
	for (uint32_t at = g->first[sw] + 1; at < g->first[sw + 1]; at++)
		if (g->peer[at] != GRAPH_NONE)
			offer(g, g->peer[at], g->link[at], g->hops[sw]);
}

void graph_tree(struct graph *g, uint32_t root)
{
	memset(g->hops, 0xff, g->n * sizeof *g->hops);
	memset(g->n_ways, 0, g->n);
	g->hops[root] = 0;
	g->order[0] = root;
	g->reached = 1;
	for (uint32_t i = 0; i < g->reached; i++)
		visit(g, g->order[i]);
}
