// SPDX-License-Identifier: BSD-3-Clause
#include "topo/layout.h"

#include <errno.h>
#include <stdlib.h>

struct key {
	double at; /* mean place of those that it is wired to */
	uint32_t node;
};

/* Reaches what is wired to the nodes of queue[0, n), and so on; the queue's new length. */
static uint32_t spread(struct layout *l, const struct topo *t, uint32_t *queue, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct topo_node *node = &t->nodes[queue[i]];

		for (unsigned p = 1; p <= node->n_ports; p++) {
			uint32_t peer = node->ports[p].peer;

			if (peer != TOPO_NONE && l->level[peer] == LAYOUT_UNREACHED) {
				l->level[peer] = l->level[queue[i]] + 1;
				queue[n++] = peer;
			}
		}
	}
	return n;
}

/* Switches that reach no adapter stand in the row of those that have adapters. */
static void find_levels(struct layout *l, const struct topo *t, uint32_t *queue)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n_nodes; i++) {
		l->level[i] = t->nodes[i].kind == TOPO_SWITCH ? LAYOUT_UNREACHED : 0;
		if (!l->level[i])
			queue[n++] = i;
	}
	spread(l, t, queue, n);
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		if (l->level[i] == LAYOUT_UNREACHED)
			l->level[i] = 1;
		if (l->level[i] >= l->n_levels)
			l->n_levels = l->level[i] + 1;
	}
}

static void sort_levels(struct layout *l, const struct topo *t)
{
	for (uint32_t n = 0; n < t->n_nodes; n++)
		l->first[l->level[n] + 1]++;
	for (uint32_t v = 0; v < l->n_levels; v++)
		l->first[v + 1] += l->first[v];
	for (uint32_t n = t->n_nodes; n-- > 0;) /* first[v + 1] counts down to where v begins */
		l->order[--l->first[l->level[n] + 1]] = n;
	for (uint32_t v = 0; v < l->n_levels; v++)
		l->first[v] = l->first[v + 1];
	l->first[l->n_levels] = t->n_nodes;
}

static int by_place(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	return x->at != y->at ? (x->at < y->at ? -1 : 1)
			      : (x->node > y->node) - (x->node < y->node);
}

static struct key key_of(const struct layout *l, const struct topo *t, const double *place,
	uint32_t n, uint32_t level)
{
	const struct topo_node *node = &t->nodes[n];
	struct key k = {.node = n};
	unsigned wires = 0;

	for (unsigned p = 1; p <= node->n_ports; p++) {
		uint32_t peer = node->ports[p].peer;

		if (peer != TOPO_NONE && l->level[peer] == level) {
			k.at += place[peer];
			wires++;
		}
	}
	k.at = wires ? k.at / wires : place[n];
	return k;
}

/* Orders a row by what its nodes are wired to in the row to; then their places, from 0 to 1. */
static void order_row(struct layout *l, const struct topo *t, double *place, struct key *keys,
	uint32_t v, uint32_t to)
{
	uint32_t *row = l->order + l->first[v], n = l->first[v + 1] - l->first[v];

	for (uint32_t i = 0; i < n; i++)
		keys[i] = key_of(l, t, place, row[i], to);
	if (n)
		qsort(keys, n, sizeof *keys, by_place);
	for (uint32_t i = 0; i < n; i++) {
		row[i] = keys[i].node;
		place[row[i]] = (i + 0.5) / n;
	}
}

/* Upwards from the adapters as they are numbered, then these below what they are wired to. */
static void order_rows(struct layout *l, const struct topo *t, double *place, struct key *keys)
{
	for (uint32_t n = 0; n < t->n_nodes; n++)
		place[n] = (n + 0.5) / t->n_nodes;
	for (uint32_t v = 1; v < l->n_levels; v++)
		order_row(l, t, place, keys, v, v - 1);
	if (l->n_levels > 1)
		order_row(l, t, place, keys, 0, 1);
}

int layout_make(struct layout *l, const struct topo *t)
{
	const size_t n = t->n_nodes + 2;
	double *place = calloc(n, sizeof *place);
	struct key *keys = calloc(n, sizeof *keys);
	int rc = 0;

	*l = (struct layout){.level = calloc(n, sizeof *l->level),
		.order = calloc(n, sizeof *l->order),
		.first = calloc(n + 1, sizeof *l->first)};
	if (place && keys && l->level && l->order && l->first) {
		find_levels(l, t, l->order);
		sort_levels(l, t);
		order_rows(l, t, place, keys);
	} else {
		layout_free(l);
		rc = -ENOMEM;
	}
	free(place);
	free(keys);
	return rc;
}

void layout_free(struct layout *l)
{
	free(l->level);
	free(l->order);
	free(l->first);
	*l = (struct layout){0};
}
