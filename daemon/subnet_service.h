/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The subnet of a fabric with a topology, in weftd: the subnet itself, its bring-up subnet manager,
 * its console, and the ports of nodes on it (daemon/node_ports.h).  There is one if the runtime
 * directory has NAME.topo (daemon/subnet_files.h).
 */
#pragma once

#include "daemon/server.h"
#include "sm/sm.h"
#include "subnet/console.h"
#include "topo/netlist.h"

struct node_port;
struct owed;

enum { NODE_PORTS = 3 }; /* 0 of a switch; 1 and 2 */

/* What a node that was asked for has. */
struct subnet_node {
	struct node_port *port[NODE_PORTS]; /* those that were asked for */
	unsigned events[NODE_PORTS];        /* of enum subnet_event, not told yet */
};

struct subnet_service {
	struct server *server;
	struct netlist net;
	struct subnet *subnet;
	struct sm *sm;
	struct lids *lids;
	struct console console;
	bool sm_off;
	struct subnet_node **nodes; /* by number; NULL: nobody asked for it */

	struct owed *owed, **owed_tail; /* answers of the subnet manager, to be sent */
	unsigned n_owed;
	bool sm_worked;   /* since LIDs were written */
	uint64_t shown;   /* subnet_changes(), when pages were brought up to date */
	uint64_t show_at; /* when the next time may be */
	char *print;      /* what the console prints now */
	size_t n_print;
	uint32_t wait_s; /* its last command said Wait */
};

/*
 * Reads NAME.topo, if there is one, makes the subnet and brings it up.  0, also if there is none;
 * -errno with one line for people in why.
 */
int subnet_service_start(struct server *s, char *why, size_t size);

/* After MADs and commands: works a little on what is due.  When there is more: 0 never. */
uint64_t subnet_service_run(struct server *s);

/* weftd leaves; what outlives it has been written. */
void subnet_service_end(struct server *s);
