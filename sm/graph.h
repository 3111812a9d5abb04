/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The switches of a subnet and the links between them, as they were when somebody looked, and the
 * shortest ways to one of them.  Port p of switch s stands at first[s] + p of the arrays of ports.
 */
#pragma once

#include "fabric/tables.h"

enum { GRAPH_NONE = UINT32_MAX, GRAPH_FAR = UINT16_MAX };

struct graph {
	const struct tables *t;
	uint32_t n, n_ports;
	uint32_t *node;    /* of each switch */
	uint32_t *of_node; /* the switch that a node is, or GRAPH_NONE */
	uint32_t *first;   /* of each switch; and one more, the end */
	uint32_t *noted;   /* of each port: where its link leads, as struct tables numbers ports */
	uint32_t *link;    /* the same at the last graph_apply(): all below counts for these */
	uint32_t *peer;    /* the switch there, or GRAPH_NONE */

	/* Of graph_tree(). */
	uint32_t *order; /* the switches that were reached, the nearest first */
	uint32_t reached;
	uint16_t *hops;  /* GRAPH_FAR: not reached */
	uint8_t *ways;   /* from first[s]: the ports that lead nearer */
	uint8_t *n_ways; /* how many of them */
};

/* The switches of t, which stays; no links yet.  -ENOMEM; graph_free() in any case. */
int graph_make(struct graph *g, const struct tables *t);
void graph_free(struct graph *g);

/* Where a switch's port leads now; 0: nowhere. */
uint32_t graph_now(const struct graph *g, uint32_t sw, uint8_t port);

/* Notes where all links lead now. */
void graph_look(struct graph *g);

/* From now on what was noted counts; a link that only one end knows of is none. */
void graph_apply(struct graph *g);

/* The switch to which a port of struct tables belongs, GRAPH_NONE: it is no switch's. */
uint32_t graph_switch(const struct graph *g, uint32_t port);

/* Finds the shortest ways to a switch. */
void graph_tree(struct graph *g, uint32_t root);
