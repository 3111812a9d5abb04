/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linear forwarding tables by the least number of hops.  Among ports that are equally near, a LID
 * gets the one that carries least so far, counted in pairs of adapters whose way it is on: what no
 * adapter sends through a switch loads none of its ports.  The same links and LIDs, routed from
 * nothing, give the same tables.  There are no rules against credit loops: no buffer fills here.
 *
 * The work comes in units of well under a millisecond.
 */
#pragma once

#include "sm/graph.h"
#include "subnet/subnet.h"
#include "wire/smp.h"

/* Where a LID is. */
struct route_place {
	uint32_t sw; /* GRAPH_NONE: at no switch */
	uint8_t port;
	bool end;   /* an adapter's or router's */
	bool first; /* of the LIDs of its port */
};

enum route_work { ROUTE_DONE, ROUTE_PLACE, ROUTE_FORGET, ROUTE_TREES, ROUTE_WRITE };

struct route {
	struct subnet *s;
	struct graph g;
	struct route_place *places;  /* by LID */
	bool *dirty;                 /* by LID: it is to be routed anew */
	uint32_t *load;              /* by port of the graph */
	uint32_t *ends;              /* of each switch: adapters' ports with a LID */
	uint32_t *flow;              /* of each switch: adapters that send through it to one LID */
	uint8_t (*column)[SMP_LIDS]; /* of each switch: the LIDs of one block */
	enum route_work work;
	uint32_t at;    /* how far that work is: a switch; a LID to forget */
	uint32_t block; /* of 64 LIDs, in work */
	uint32_t lid;   /* the next one of it */
	uint32_t tree;  /* to which switch the graph has the ways; GRAPH_NONE */
	uint16_t top;   /* the last LID that is in use */
};

/* -ENOMEM; route_free() in any case.  s stays. */
int route_make(struct route *r, struct subnet *s);
void route_free(struct route *r);

/* Work: all LIDs up to top, on the links that are there now. */
void route_all(struct route *r, uint16_t top);

/*
 * Compares the links of a switch with those of its tables; notes which LIDs are to be routed anew.
 * False: so many that route_all() has to follow, because a link between switches has come.
 */
bool route_compare(struct route *r, uint32_t sw);

/* Work: the LIDs that route_compare() has noted of all switches. */
void route_changed(struct route *r);

/* Does one unit.  False: there is none left. */
bool route_unit(struct route *r);
