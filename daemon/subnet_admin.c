// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/subnet_admin.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/node_ports.h"
#include "daemon/status.h"
#include "daemon/subnet_files.h"
#include "daemon/umad_file.h"
#include "fabric/page.h"
#include "sm/attr.h"
#include "subnet/console_say.h"
#include "topo/print.h"

int subnet_admin_node(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	const char *name = in->payload.node.name;
	struct node *n;
	uint32_t number;
	int ret;

	(void)c;
	if (!s->subnet)
		return -EOPNOTSUPP;
	if (!memchr(name, '\0', sizeof in->payload.node.name))
		return -EINVAL;
	number = topo_find(&s->subnet->net.topo, name);
	if (number == TOPO_NONE)
		return -ENOENT;
	ret = node_get(s, number, &n);
	if (ret)
		return ret;
	r->payload.node_found = (struct proto_node_found){
		.number = number,
		.is_switch = n->page->node_type == FABRIC_SWITCH,
		.files_errno = (uint32_t)-node_files(s, n),
	};
	return 0;
}

/* ---- the topology as it is now ---- */

/* GUIDs, LIDs and cables of one node. */
static void look_at(struct subnet *s, uint32_t number, struct topo_node *node)
{
	const struct tables *t = subnet_tables(s);
	const struct tables_port *ports = &t->ports[t->nodes[number].port0];
	uint8_t data[SMP_DATA_SIZE];
	struct node_info info;

	for (unsigned p = node->kind != TOPO_SWITCH; p <= node->n_ports; p++) {
		struct topo_port *port = &node->ports[p];
		bool managed = node->kind != TOPO_SWITCH || !p;

		port->peer = TOPO_NONE;
		if (p)
			(void)subnet_cable(s, number, p, &port->peer, &port->peer_port);
		port->lid = managed ? tables_load(&ports[p].lid) : 0;
		port->lmc = managed ? tables_load(&ports[p].lmc) : 0;
		if (!managed || !attr_get(s, number, p, SMP_NODE_INFO, 0, data))
			continue;
		wire_unpack(&node_info_format, data, &info);
		port->guid = info.port_guid;
		node->guid = info.node_guid;
		node->system_guid = info.system_guid;
	}
}

static void free_copy(struct topo *t)
{
	for (uint32_t n = 0; n < t->n_nodes; n++)
		free(t->nodes[n].ports);
	free(t->nodes);
}

/* A copy of the fabric's that borrows its texts; free_copy() ends it.  -ENOMEM. */
static int look(const struct subnet_service *net, struct topo *out)
{
	const struct topo *t = &net->net.topo;

	*out = *t;
	out->n_nodes = 0;
	out->nodes = calloc(t->n_nodes + 1, sizeof *out->nodes);
	if (!out->nodes)
		return -ENOMEM;
	for (; out->n_nodes < t->n_nodes; out->n_nodes++) {
		struct topo_node *node = &out->nodes[out->n_nodes];
		size_t size = (t->nodes[out->n_nodes].n_ports + 1) * sizeof *node->ports;

		*node = t->nodes[out->n_nodes];
		node->ports = malloc(size);
		if (!node->ports) {
			free_copy(out);
			return -ENOMEM;
		}
		memcpy(node->ports, t->nodes[out->n_nodes].ports, size);
		look_at(net->subnet, out->n_nodes, node);
	}
	return 0;
}

static const char *state_name(unsigned state)
{
	static const char *const names[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE"};

	return state < sizeof names / sizeof *names ? names[state] : "?";
}

/* Adds what only a subnet that runs has. */
static void add_states(const struct tables *t, json_t *topo)
{
	json_t *node, *port;
	size_t n, i;

	json_array_foreach(json_object_get(topo, "nodes"), n, node)
	{
		json_array_foreach(json_object_get(node, "ports"), i, port)
		{
			json_int_t p = json_integer_value(json_object_get(port, "port"));
			const struct tables_port *at = &t->ports[t->nodes[n].port0 + p];

			json_object_set_new(
				port, "state", json_string(state_name(tables_load(&at->state))));
			json_object_set_new(
				port, "link", json_boolean(tables_load(&at->peer) != 0));
		}
	}
}

static char *json_text(const struct subnet_service *net, const struct topo *t, size_t *size)
{
	json_t *o = topo_json(t);
	char *text;

	if (o)
		add_states(subnet_tables(net->subnet), o);
	text = o ? json_dumps(o, JSON_INDENT(2)) : NULL;
	json_decref(o);
	*size = text ? strlen(text) : 0;
	return text;
}

static char *net_text(const struct topo *t, size_t *size)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, size);

	if (!f)
		return NULL;
	topo_print_net(t, f);
	if (!fclose(f))
		return text;
	free(text);
	return NULL;
}

/* Gives a text away as a memfd; frees it. */
static int give(char *text, size_t size, struct reply *r)
{
	int fd = text ? status_text_memfd(text, size) : -ENOMEM;

	free(text);
	if (fd < 0)
		return fd;
	r->fds[r->n_fds++] = reply_owns(r, fd);
	return 0;
}

int subnet_admin_topo(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	struct topo t;
	size_t size = 0;
	char *text;
	int ret;

	(void)c;
	if (!s->subnet)
		return -EOPNOTSUPP;
	ret = look(s->subnet, &t);
	if (ret)
		return ret;
	text = in->payload.topo.form == PROTO_TOPO_JSON ? json_text(s->subnet, &t, &size)
							: net_text(&t, &size);
	free_copy(&t);
	r->payload.status.size = size;
	return give(text, size, r);
}

/* ---- weft status ---- */

/* Ports that have a link, and those of them that are ACTIVE. */
static void count_ports(const struct tables *t, json_int_t *linked, json_int_t *active)
{
	*linked = *active = 0;
	for (uint32_t i = 1; i < t->head->n_ports; i++) {
		if (!tables_load(&t->ports[i].peer))
			continue;
		++*linked;
		*active += tables_load(&t->ports[i].state) == PORT_ACTIVE;
	}
}

json_t *subnet_admin_status(const struct subnet_service *net)
{
	const struct tables *t = subnet_tables(net->subnet);
	json_int_t of[TABLES_ROUTER + 1] = {0}, linked, active, used = 0;
	json_t *o = json_object();

	for (uint32_t n = 0; n < t->head->n_nodes; n++) {
		of[t->nodes[n].kind]++;
		used += net->nodes[n] != NULL;
	}
	count_ports(t, &linked, &active);
	json_object_set_new(o, "sm", json_string(sm_state_name(net->sm)));
	json_object_set_new(o, "adapters", json_integer(of[TABLES_CA]));
	json_object_set_new(o, "switches", json_integer(of[TABLES_SWITCH]));
	json_object_set_new(o, "routers", json_integer(of[TABLES_ROUTER]));
	json_object_set_new(o, "nodes_in_use", json_integer(used));
	json_object_set_new(o, "links", json_integer(linked / 2));
	json_object_set_new(o, "ports_not_active", json_integer(linked - active));
	return o;
}

json_t *subnet_admin_drops(const struct subnet_service *net)
{
	json_t *o = json_object();

	for (int i = 0; i < SUBNET_DROP_COUNT; i++)
		json_object_set_new(o, subnet_drop_name(i),
			json_integer((json_int_t)subnet_drops(net->subnet, i)));
	return o;
}

/* ---- what the console asks of weftd: how much is logged ---- */

static const struct {
	enum log_level level;
	const char *name;
} verbose[] = {{LOG_LVL_ERROR, "error"}, {LOG_LVL_WARN, "warn"}, {LOG_LVL_INFO, "info"},
	{LOG_LVL_DEBUG, "debug"}};

enum { VERBOSE_MOST = sizeof verbose / sizeof *verbose - 1 };

static int set_verbose(void *arg, uint64_t n)
{
	struct subnet_service *net = arg;
	unsigned now = 0;

	if (n != UINT64_MAX) {
		log_set_level(verbose[n < VERBOSE_MOST ? n : VERBOSE_MOST].level);
		return 0;
	}
	while (now < VERBOSE_MOST && log_enabled(verbose[now + 1].level))
		now++;
	console_print(
		&net->console, "verbose level %u: weftd logs up to %s\n", now, verbose[now].name);
	return 0;
}

/* ---- time ---- */

/* weftd waits for nobody: who gives the commands does. */
static int wait_seconds(void *arg, uint64_t n)
{
	((struct subnet_service *)arg)->wait_s = (uint32_t)n;
	return 0;
}

/* ---- clients ---- */

/* The process that opened a umad file, or the last of those that have it; 0: not known. */
static pid_t client_of(const struct ufile *f)
{
	return f->lanes && f->lanes->session ? f->lanes->session->pid : 0;
}

static bool has(const struct ufile *f, pid_t pid)
{
	for (const struct ulane *l = f->lanes; l; l = l->next)
		if (l->session && l->session->pid == pid)
			return true;
	return false;
}

static unsigned agents(const struct ufile *f)
{
	unsigned n = 0;

	for (unsigned i = 0; i < UMAD_AGENTS; i++)
		n += f->slot[i] != NULL;
	return n;
}

static int list_clients(void *arg, uint64_t n)
{
	struct subnet_service *net = arg;

	(void)n;
	for (const struct ufile *f = net->server->umads->files; f; f = f->next) {
		const struct fabric_port *p = fabric_port(f->node->page, f->port_number);

		console_print(&net->console,
			"Client %d: connected at \"%s\"[%" PRIu32 "], lid %u, %u agents\n",
			(int)client_of(f), console_id(&net->console, f->node->number),
			f->port_number, p ? (unsigned)p->lid : 0, agents(f));
	}
	return 0;
}

/* Its files go as if the device had been removed. */
static int cut_off(void *arg, uint64_t pid)
{
	struct subnet_service *net = arg;
	struct ufile *next;
	bool any = false;

	for (struct ufile *f = net->server->umads->files; f; f = next) {
		next = f->next;
		if (!pid || !has(f, (pid_t)pid))
			continue;
		ufile_end(f);
		any = true;
	}
	if (any)
		return 0;
	return console_fail(&net->console, -ESRCH,
		"no process %" PRIu64 " has a umad file; Attached lists those that have", pid);
}

/* ---- its end ---- */

static int quit(void *arg, uint64_t n)
{
	struct subnet_service *net = arg;

	(void)n;
	net->server->stop = true;
	subnet_files_forget(&net->server->paths);
	return 0;
}

void subnet_admin_hooks(struct subnet_service *net, bool in_netlist)
{
	net->console.hooks.own[CONSOLE_VERBOSE] = set_verbose;
	net->console.hooks.own[CONSOLE_WAIT] = wait_seconds;
	if (in_netlist)
		return;
	net->console.hooks.own[CONSOLE_ATTACHED] = list_clients;
	net->console.hooks.own[CONSOLE_X] = cut_off;
	net->console.hooks.own[CONSOLE_QUIT] = quit;
}

/* ---- commands ---- */

/*
 * Carries out a line; what it changes is kept for the next weftd.  0; -errno: it was refused; above
 * 0: it was done, and that errno says why it was not kept.
 */
static int carry_out(struct subnet_service *net, const char *line, size_t len)
{
	char kept[CONSOLE_LINE];
	int n = console_normalise(&net->console, line, len, kept);
	int ret = console_line(&net->console, line, len);

	if (ret || n <= 0)
		return ret;
	ret = subnet_files_add(&net->server->paths, kept);
	if (ret)
		log_line(LOG_LVL_WARN, "cannot keep \"%s\" in %s/%s.topo: %s", kept,
			net->server->paths.dir, net->server->paths.name, strerror(-ret));
	return -ret;
}

int subnet_admin_do(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	struct subnet_service *net = s->subnet;
	char *text;
	size_t size;
	int ret;

	(void)c;
	if (!net)
		return -EOPNOTSUPP;
	net->wait_s = 0;
	ret = carry_out(net, (const char *)in->payload.bytes, in->len);
	if (ret < 0)
		free(net->print);
	text = ret < 0 ? strdup(net->console.error) : net->print ? net->print : strdup("");
	size = text ? strlen(text) : 0; /* the console prints no NUL */
	net->print = NULL;
	net->n_print = 0;
	r->payload.topo_done =
		(struct proto_topo_done){.error = ret, .wait_s = net->wait_s, .size = size};
	s->deliver(s);
	return give(text, size, r);
}
