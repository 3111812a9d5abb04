/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes and ports of one user on one machine, as files in the runtime directory: NAME.scif/node.N
 * is locked by every process of node N that has opened an endpoint, NAME.scif/N.P by who holds port
 * P; it holds the CM's port and address once somebody listens.  Locks end with their
 * process, so nothing is ever left over but empty names.  Nodes of other machines: host.h.
 */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

struct scif_id {
	uint16_t node, port;
};

/* A bound port; shared by a listener and what it accepts. */
struct scif_port {
	_Atomic uint32_t refs;
	_Atomic uint32_t users; /* endpoints that are not closed; the last one gives it back */
	struct scif_id id;
	int fd; /* open file description with the lock */
};

/* This process's node, of WEFT_NODE; 0 if that is none. */
uint16_t node_self(void);
/* Is it one, and WEFT_SCIF_NODES sound?  -EINVAL, with a line in the log: before the first
 * endpoint, and what asks for nodes.
 */
int node_check(void);
/* Enters this process's node into the network; once, cheap after that. */
int node_join(void);
/* After fork: forgets what the parent entered. */
void node_forked(void);
/* As scif_get_nodeIDs(). */
int node_list(uint16_t *nodes, int len, uint16_t *self);
/* When the first process of a node came, on some clock; another one means that it was away. */
uint64_t node_since(uint16_t node);

/* Takes a port (0: any above SCIF_PORT_RSVD); -EACCES, -EINVAL it is taken, -ENOSPC, -ENOMEM. */
int port_bind(uint16_t pn, struct scif_port **port);
/* For one more endpoint: a user and a reference. */
struct scif_port *port_get(struct scif_port *port);
/* An endpoint is closed, though threads may still look at it: others may have the port. */
void port_leave(struct scif_port *port);
void port_put(struct scif_port *port);
/* Where it has to listen: at its node's address and the CM's port of that number, or anywhere. */
void port_place(const struct scif_port *port, struct sockaddr_storage *addr);
/* Publishes that port p of the CM listens for it. */
int port_publish(struct scif_port *port, uint16_t cm_port);
/* After fork: the lock stays the parent's. */
void port_forked(struct scif_port *port);

/*
 * The CM's address of a port; -ENODEV no such node, -ECONNREFUSED nobody listens.  Whether anybody
 * does on another machine is not asked.
 */
int port_address(struct scif_id id, struct sockaddr_storage *addr);
