// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/node_ports.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/process.h"
#include "daemon/subnet_files.h"
#include "daemon/subnet_page.h"
#include "fabric/sysfs.h"
#include "mad/loop.h"

struct node_port {
	struct mad_port mad;
	struct subnet_service *net;
	uint32_t node;
	uint8_t number;
};

/* ---- nodes ---- */

/* The name of a node's device files. */
static void tree_name(const struct server *s, uint32_t number, char *name, size_t size)
{
	if (number)
		snprintf(name, size, "%s.tree.%u", s->paths.name, number);
	else
		snprintf(name, size, "%s.tree", s->paths.name);
}

static void write_files(const struct server *s, struct node *n)
{
	char name[sizeof s->paths.name + 24];

	tree_name(s, n->number, name, sizeof name);
	n->files = sysfs_write(s->paths.dir_fd, name, n->page);
	if (n->files)
		log_line(LOG_LVL_WARN, "cannot write %s/%s: %s", s->paths.dir, name,
			strerror(-n->files));
}

int node_files(const struct server *s, struct node *n)
{
	if (n->files)
		write_files(s, n);
	return n->files;
}

static int make(struct subnet_service *net, uint32_t number, struct node **out)
{
	struct server *s = net->server;
	struct subnet_node *n = calloc(1, sizeof *n);
	int ret = n ? nodes_make(&s->nodes, number, s->paths.fabric, 0, out) : -ENOMEM;

	if (ret) {
		free(n);
		return ret;
	}
	net->nodes[number] = n;
	if (s->epoch > 1)
		(*out)->page->restarted_ns = s->started ? s->started : clock_ns();
	subnet_page_fill((*out)->page, net->subnet, &net->net.topo.nodes[number], number);
	write_files(s, *out);
	return 0;
}

int node_get(struct server *s, uint32_t number, struct node **out)
{
	if (!s->subnet) {
		*out = s->node;
		return 0;
	}
	if (number >= s->subnet->net.topo.n_nodes)
		return -ENODEV;
	*out = nodes_find(&s->nodes, number);
	return *out ? 0 : make(s->subnet, number, out);
}

static void remake(void *arg, uint32_t number)
{
	struct server *s = arg;
	char name[sizeof s->paths.name + 24], path[sizeof name + PATH_MAX];
	struct node *n;

	if (s->subnet && !node_get(s, number, &n))
		return;
	tree_name(s, number, name, sizeof name);
	snprintf(path, sizeof path, "%s/%s", s->paths.dir, name);
	sysfs_remove(path);
}

void node_ports_remake(struct server *s)
{
	subnet_files_each_tree(&s->paths, remake, s);
}

/* ---- MAD ports ---- */

/* Base LID and LMC are what the layer matches requests and answers by. */
static void learn_lid(struct node_port *p)
{
	const struct tables *t = subnet_tables(p->net->subnet);
	const struct tables_port *port = &t->ports[t->nodes[p->node].port0 + p->number];

	p->mad.lid = tables_load(&port->lid);
	p->mad.lmc = tables_load(&port->lmc);
}

static int transmit(void *arg, const struct mad_addr *to, const uint8_t mad[MAD_SIZE])
{
	struct node_port *p = arg;

	learn_lid(p);
	return subnet_send(p->net->subnet, p->node, p->number, to->qp, to, mad);
}

static struct mad_port *make_port(struct subnet_service *net, uint32_t node, uint8_t number)
{
	struct node_port *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->net = net;
	p->node = node;
	p->number = number;
	p->mad = (struct mad_port){.layer = net->server->mad_port->layer,
		.transmit = transmit,
		.arg = p,
		.has_qp0 = true};
	learn_lid(p);
	net->nodes[node]->port[number] = p;
	return &p->mad;
}

struct mad_port *node_mad_port(struct server *s, uint32_t node, unsigned port)
{
	struct node_port *p;
	struct node *n;

	if (node_get(s, node, &n) || !fabric_port(n->page, port))
		return NULL;
	if (!s->subnet)
		return s->mad_port;
	p = s->subnet->nodes[node]->port[port];
	return p ? &p->mad : make_port(s->subnet, node, port);
}

bool node_ports_deliver(struct subnet_service *net, uint32_t node, uint8_t port, unsigned qp,
	const struct mad_addr *from, const uint8_t mad[MAD_SIZE])
{
	struct mad_addr addr = *from;
	struct node_port *p;

	if (!net->nodes[node] || port >= NODE_PORTS)
		return false;
	p = net->nodes[node]->port[port];
	if (!p)
		return false;
	learn_lid(p);
	addr.qp = qp;
	(void)mad_queue(&p->mad, &addr, mad); /* a full queue counts it as a drop */
	return true;
}

void node_ports_end(struct subnet_service *net)
{
	for (uint32_t i = 0; i < net->net.topo.n_nodes; i++) {
		if (!net->nodes[i])
			continue;
		for (unsigned p = 0; p < NODE_PORTS; p++) {
			if (net->nodes[i]->port[p])
				mad_port_end(&net->nodes[i]->port[p]->mad);
			free(net->nodes[i]->port[p]);
		}
		free(net->nodes[i]);
		net->nodes[i] = NULL;
	}
}

/* ---- who is an SM ---- */

void node_issm_opened(struct server *s, uint32_t node, unsigned port)
{
	if (!s->subnet || subnet_set_sm(s->subnet->subnet, node, port, true))
		return;
	sm_issm_opened(s->subnet->sm);
}

void node_issm_closed(struct server *s, uint32_t node, unsigned port)
{
	if (!s->subnet || subnet_set_sm(s->subnet->subnet, node, port, false))
		return;
	sm_issm_closed(s->subnet->sm);
}

/* ---- showing ---- */

/* What a program hears of an event, in the order in which an adapter tells it. */
static const struct {
	unsigned event;
	enum ibv_event_type type;
} told[] = {
	{SUBNET_PORT_ACTIVE, IBV_EVENT_PORT_ACTIVE},
	{SUBNET_LID_CHANGE, IBV_EVENT_LID_CHANGE},
	{SUBNET_SM_CHANGE, IBV_EVENT_SM_CHANGE},
	{SUBNET_CLIENT_REREGISTER, IBV_EVENT_CLIENT_REREGISTER},
	{SUBNET_PKEY_CHANGE, IBV_EVENT_PKEY_CHANGE},
	{SUBNET_GID_CHANGE, IBV_EVENT_GID_CHANGE},
	{SUBNET_PORT_ERR, IBV_EVENT_PORT_ERR},
};

static void tell(struct server *s, const struct node *n, unsigned events)
{
	for (struct process *p = s->processes; p; p = p->next)
		for (size_t i = 0; p->node == n && i < sizeof told / sizeof *told; i++)
			if (events & told[i].event)
				recover_port_event(&s->env, p->seg, p->id, told[i].type);
}

static void show_one(struct subnet_service *net, uint32_t number)
{
	struct node *n = nodes_find(&net->server->nodes, number);
	unsigned events = 0;

	if (subnet_page_update(n->page, net->subnet, number))
		write_files(net->server, n);
	for (unsigned p = 0; p < NODE_PORTS; p++) {
		events |= net->nodes[number]->events[p];
		net->nodes[number]->events[p] = 0;
	}
	if (events)
		tell(net->server, n, events);
}

void node_ports_show(struct subnet_service *net)
{
	for (uint32_t i = 0; i < net->net.topo.n_nodes; i++)
		if (net->nodes[i])
			show_one(net, i);
}
