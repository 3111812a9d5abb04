// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/subnet_service.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/deadline.h"
#include "base/log.h"
#include "daemon/node_ports.h"
#include "daemon/subnet_admin.h"
#include "daemon/subnet_files.h"

enum {
	OWED_MAX = 4096,
	SHOW_NS = 10 * NSEC_PER_MSEC, /* a sweep sets thousands of things */
};

/* An answer of the built-in subnet manager: it may not be sent while its request is delivered. */
struct owed {
	struct owed *next;
	uint32_t node;
	uint8_t port;
	struct mad_addr to;
	uint8_t mad[MAD_SIZE];
};

/* ---- what the subnet needs of us ---- */

static uint64_t now(void *arg)
{
	(void)arg;
	return clock_ns();
}

static void owe(struct subnet_service *net, uint32_t node, uint8_t port,
	const struct mad_addr *from, const uint8_t reply[MAD_SIZE])
{
	struct owed *o = net->n_owed < OWED_MAX ? malloc(sizeof *o) : NULL;

	if (!o)
		return; /* as if it were lost on its way: who asks, asks again */
	*o = (struct owed){.node = node, .port = port, .to = *from};
	memcpy(o->mad, reply, MAD_SIZE);
	*net->owed_tail = o;
	net->owed_tail = &o->next;
	net->n_owed++;
}

static bool deliver(void *arg, uint32_t node, uint8_t port, unsigned qp,
	const struct mad_addr *from, const uint8_t mad[MAD_SIZE])
{
	struct subnet_service *net = arg;
	uint8_t reply[MAD_SIZE];

	if (qp == 0 && net->sm && sm_take(net->sm, node, port, mad, reply)) {
		owe(net, node, port, from, reply);
		return true;
	}
	return node_ports_deliver(net, node, port, qp, from, mad);
}

static void event(void *arg, uint32_t node, uint8_t port, unsigned events)
{
	struct subnet_service *net = arg;

	if (net->nodes[node] && port < NODE_PORTS)
		net->nodes[node]->events[port] |= events;
}

/* ---- work ---- */

static void pay(struct subnet_service *net)
{
	struct owed *o;

	while ((o = net->owed)) {
		net->owed = o->next;
		if (!net->owed)
			net->owed_tail = &net->owed;
		net->n_owed--;
		(void)subnet_send(net->subnet, o->node, o->port, 0, &o->to, o->mad);
		free(o);
	}
}

static bool is_due(uint64_t when)
{
	return when && when <= clock_ns();
}

static void manage(struct subnet_service *net)
{
	if (is_due(sm_next(net->sm))) {
		net->sm_worked = true;
		sm_step(net->sm, SM_STEP_NS);
	}
	if (net->sm_worked && !is_due(sm_next(net->sm))) {
		net->sm_worked = false;
		subnet_files_put_lids(&net->server->paths, net->lids);
	}
}

/* When pages have to be brought up to date; 0: they are. */
static uint64_t show(struct subnet_service *net)
{
	uint64_t changes = subnet_changes(net->subnet);

	if (changes == net->shown)
		return 0;
	if (!is_due(net->show_at))
		return net->show_at;
	net->shown = changes;
	net->show_at = clock_ns() + SHOW_NS;
	node_ports_show(net);
	return 0;
}

uint64_t subnet_service_run(struct server *s)
{
	struct subnet_service *net = s->subnet;
	uint64_t when;

	if (!net)
		return 0;
	pay(net);
	if (is_due(subnet_next(net->subnet)))
		subnet_run(net->subnet);
	manage(net);
	when = deadline_earlier(subnet_next(net->subnet), sm_next(net->sm));
	when = deadline_earlier(when, show(net));
	return net->owed ? 1 : when;
}

/* ---- the console ---- */

static void print(void *arg, const char *text, size_t len)
{
	struct subnet_service *net = arg;
	char *more = realloc(net->print, net->n_print + len + 1);

	if (!more)
		return;
	memcpy(more + net->n_print, text, len);
	net->print = more;
	net->n_print += len;
	more[net->n_print] = '\0';
}

static void make_console(struct subnet_service *net)
{
	net->console.subnet = net->subnet;
	net->console.topo = &net->net.topo;
	net->console.hooks.print = print;
	net->console.hooks.arg = net;
}

/* ---- from start to end ---- */

/* The commands that changed the subnet of an earlier weftd, or stand in the user's file. */
static int replay(struct subnet_service *net, char *why, size_t size)
{
	for (uint32_t i = 0; i < net->net.n_commands; i++) {
		const char *line = net->net.commands[i];
		int ret = console_line(&net->console, line, strlen(line));

		free(net->print);
		net->print = NULL;
		net->n_print = 0;
		if (!ret)
			continue;
		snprintf(why, size, "do %.100s: %s", line, net->console.error);
		return ret;
	}
	return 0;
}

static int make(struct subnet_service *net, char *why, size_t size)
{
	const struct subnet_ops ops = {deliver, event, now, net};
	const struct sm_ops sm_ops = {now, net};
	int ret = subnet_create(&net->subnet, &net->net.topo, &ops);

	net->nodes = calloc(net->net.topo.n_nodes + 1, sizeof *net->nodes);
	net->lids = calloc(1, sizeof *net->lids);
	if (!ret && (!net->nodes || !net->lids))
		ret = -ENOMEM;
	if (ret)
		return ret;
	make_console(net);
	subnet_admin_hooks(net, true);
	ret = replay(net, why, size);
	if (ret)
		return ret;
	subnet_admin_hooks(net, false);
	subnet_files_get_lids(&net->server->paths, net->lids);
	return sm_create(&net->sm, net->subnet, net->lids, &sm_ops, net->sm_off);
}

/* Nobody is there yet who would have to wait. */
static void bring_up(struct subnet_service *net)
{
	while (sm_step(net->sm, SM_STEP_NS))
		;
	if (!net->sm_off)
		subnet_files_put_lids(&net->server->paths, net->lids);
}

int subnet_service_start(struct server *s, char *why, size_t size)
{
	struct subnet_service *net = calloc(1, sizeof *net);
	int ret;

	if (!net)
		return -ENOMEM;
	net->server = s;
	net->owed_tail = &net->owed;
	ret = subnet_files_get(&s->paths, &net->net, &net->sm_off, why, size);
	if (ret) {
		free(net);
		return ret == -ENOENT ? 0 : ret;
	}
	ret = make(net, why, size);
	if (ret && !*why)
		snprintf(why, size, "cannot make the subnet: %s", strerror(-ret));
	if (ret)
		return ret;
	s->subnet = net;
	s->stay = true; /* what a subnet manager has set would be gone */
	bring_up(net);
	net->show_at = 1;
	return 0;
}

void subnet_service_end(struct server *s)
{
	struct subnet_service *net = s->subnet;

	if (!net)
		return;
	node_ports_end(net);
	while (net->owed) {
		struct owed *next = net->owed->next;

		free(net->owed);
		net->owed = next;
	}
	sm_free(net->sm);
	subnet_free(net->subnet);
	netlist_free(&net->net);
	free(net->nodes);
	free(net->lids);
	free(net->print);
	free(net);
	s->subnet = NULL;
}
