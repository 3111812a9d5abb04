/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ports of nodes, as those who send MADs by them need them.  A fabric without a topology has
 * one node, whatever number is asked for: weft0.  One with a topology has those of the topology;
 * what a node needs in weftd (page, device files, MAD ports) is made when it is first asked for.
 */
#pragma once

#include "daemon/subnet_service.h"
#include "mad/mad.h"

/*
 * The node of that number, which stays where it is.  -ENODEV: there is none; -ENOMEM; what
 * nodes_make() answers.
 */
int node_get(struct server *s, uint32_t number, struct node **out);

/*
 * Whether a node's device files are as its page says: they are written once more if they could not
 * be, for lack of room, say.  0 or -errno.
 */
int node_files(const struct server *s, struct node *n);

/* The MAD port of a port, 1 or 2, or 0 of a switch.  NULL: there is no such port, or no memory. */
struct mad_port *node_mad_port(struct server *s, uint32_t node, unsigned port);

/*
 * An issm file of a port was opened, or closed: the port's IsSM bit, and the built-in subnet
 * manager gives way.  Without a topology nothing happens.
 */
void node_issm_opened(struct server *s, uint32_t node, unsigned port);
void node_issm_closed(struct server *s, uint32_t node, unsigned port);

/* ---- for daemon/subnet_service.c ---- */

/* A MAD for the programs on a port.  False: nobody has asked for that port. */
bool node_ports_deliver(struct subnet_service *net, uint32_t node, uint8_t port, unsigned qp,
	const struct mad_addr *from, const uint8_t mad[MAD_SIZE]);

/* Brings pages and device files up to date with the subnet, and tells processes what happened. */
void node_ports_show(struct subnet_service *net);

/* Makes the nodes again that an earlier weftd had; the device files of others go. */
void node_ports_remake(struct server *s);

/* All MAD ports end; the nodes stay until nodes_end(). */
void node_ports_end(struct subnet_service *net);
