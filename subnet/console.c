// SPDX-License-Identifier: BSD-3-Clause
#include "subnet/console.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "subnet/console_counter.h"
#include "subnet/console_say.h"
#include "subnet/console_show.h"
#include "wire/smp.h"

typedef int (*at_port)(struct subnet *s, uint32_t node, uint8_t port);

static uint8_t ports_of(const struct console *c, const struct console_place *at)
{
	return c->topo->nodes[at->node].n_ports;
}

static bool is_switch_node(const struct console *c, const struct console_place *at)
{
	return c->topo->nodes[at->node].kind == TOPO_SWITCH;
}

/* ---- cables ---- */

static int wired_already(struct console *c, const struct console_place *at)
{
	uint32_t peer = 0;
	uint8_t peer_port = 0;

	if (subnet_cable(c->subnet, at->node, at->port, &peer, &peer_port))
		return console_fail(c, -EBUSY,
			"the other end of the cable of \"%s\"[%u] is wired to something else",
			console_id(c, at->node), at->port);
	return console_fail(c, -EBUSY, "\"%s\"[%u] is wired already, to \"%s\"[%u]",
		console_id(c, at->node), at->port, console_id(c, peer), peer_port);
}

static int link_ports(struct console *c, const struct console_command *cmd)
{
	const struct console_place *a = &cmd->at, *b = &cmd->peer;
	int rc = subnet_link(c->subnet, a->node, a->port, b->node, b->port);
	uint8_t peer_port;
	uint32_t peer;

	if (rc == -EBUSY)
		return wired_already(
			c, subnet_cable(c->subnet, a->node, a->port, &peer, &peer_port) ? b : a);
	if (rc)
		return console_fail(c, rc, "a port cannot be wired to itself");
	return 0;
}

/* One port, or all of a node to which it applies. */
static int each_port(struct console *c, const struct console_place *at, at_port act)
{
	if (at->one)
		return act(c->subnet, at->node, at->port);
	for (unsigned p = 1; p <= ports_of(c, at); p++)
		(void)act(c->subnet, at->node, p);
	return 0;
}

static int unlink_ports(struct console *c, const struct console_command *cmd)
{
	int rc = each_port(c, &cmd->at, subnet_unlink);

	if (rc)
		return console_fail(c, rc, "nothing is plugged in at \"%s\"[%u]",
			console_id(c, cmd->at.node), cmd->at.port);
	return 0;
}

static int relink_ports(struct console *c, const struct console_command *cmd)
{
	int rc = each_port(c, &cmd->at, subnet_relink);

	if (rc == -EBUSY)
		return wired_already(c, &cmd->at);
	if (rc)
		return console_fail(c, rc, "\"%s\"[%u] has no cable that was pulled; Link wires it",
			console_id(c, cmd->at.node), cmd->at.port);
	return 0;
}

static int clear_ports(struct console *c, const struct console_command *cmd)
{
	if (!cmd->at.one && is_switch_node(c, &cmd->at))
		(void)subnet_clear(c->subnet, cmd->at.node, 0);
	return each_port(c, &cmd->at, subnet_clear);
}

/* ---- what a port is ---- */

static int set_guid(struct console *c, const struct console_command *cmd)
{
	uint32_t by;

	if (cmd->at.port && is_switch_node(c, &cmd->at))
		return console_fail(
			c, -EINVAL, "all ports of a switch have its GUID: name no port");
	if (subnet_guid_taken(c->subnet, cmd->at.node, cmd->at.port, cmd->number[0], &by))
		return console_fail(c, -EEXIST, "%s of \"%s\" has the GUID 0x%" PRIx64,
			cmd->at.port ? "a port" : "the node", console_id(c, by), cmd->number[0]);
	return subnet_set_guid(c->subnet, cmd->at.node, cmd->at.port, cmd->number[0]);
}

static int set_errors(struct console *c, const struct console_command *cmd)
{
	const struct console_place *at = &cmd->at;
	unsigned from = at->one ? at->port : 1, to = at->one ? at->port : ports_of(c, at);
	uint16_t attribute = cmd->n_numbers > 1 ? cmd->number[1] : 0;
	int rc = 0;

	for (unsigned p = from; !rc && p <= to; p++)
		rc = subnet_set_errors(c->subnet, at->node, p, cmd->number[0], attribute);
	return rc;
}

/* A Get or Set of PortInfo of a port with a LID; the status. */
static int port_info(
	struct console *c, const struct console_place *at, uint8_t method, struct port_info *i)
{
	struct smp_hdr h = {.base_version = MAD_BASE_VERSION,
		.mgmt_class = MAD_CLASS_SUBN_LID,
		.class_version = SMP_CLASS_VERSION,
		.method = method,
		.attr = SMP_PORT_INFO,
		.attr_mod = at->port};
	uint8_t mad[MAD_SIZE] = {0};

	wire_pack(&smp_hdr_format, &h, mad);
	wire_pack(&port_info_format, i, mad + SMP_DATA);
	if (subnet_local_smp(c->subnet, at->node, at->port, mad))
		return SMP_INVALID;
	wire_unpack(&smp_hdr_format, mad, &h);
	wire_unpack(&port_info_format, mad + SMP_DATA, i);
	return h.status;
}

static int set_lid(struct console *c, const struct console_command *cmd)
{
	struct port_info i = {0};
	int status = port_info(c, &cmd->at, MAD_GET, &i);
	uint8_t lmc = cmd->n_numbers > 1 ? cmd->number[1] : i.lmc;

	if (cmd->at.port && is_switch_node(c, &cmd->at))
		return console_fail(c, -EINVAL, "a switch has its LID at port 0: \"%s\"[0]",
			console_id(c, cmd->at.node));
	i.lid = cmd->number[0];
	i.lmc = lmc;
	i.state = i.phys_state = 0; /* as they are */
	status = status ? status : port_info(c, &cmd->at, MAD_SET, &i);
	if (status)
		return console_fail(c, -EINVAL,
			"LID %u does not go with LMC %u: wants %u LIDs, from a multiple of that",
			(unsigned)cmd->number[0], lmc, 1u << lmc);
	return 0;
}

/* ---- lines ---- */

static int help(struct console *c, const struct console_command *cmd)
{
	(void)cmd;
	console_help(c);
	return 0;
}

static int nothing(struct console *c, const struct console_command *cmd)
{
	(void)c, (void)cmd;
	return 0;
}

static int (*const carry_out_command[])(struct console *c, const struct console_command *cmd) = {
	[CONSOLE_DUMP] = console_dump,
	[CONSOLE_ROUTE] = console_route,
	[CONSOLE_LINK] = link_ports,
	[CONSOLE_UNLINK] = unlink_ports,
	[CONSOLE_CLEAR] = clear_ports,
	[CONSOLE_GUID] = set_guid,
	[CONSOLE_LOSSES] = set_errors,
	[CONSOLE_BASELID] = set_lid,
	[CONSOLE_START] = nothing,
	[CONSOLE_HELP] = help,
	[CONSOLE_RELINK] = relink_ports,
	[CONSOLE_COUNTER] = console_set_counter,
	[CONSOLE_NOTHING] = nothing,
};

static int ask_owner(struct console *c, const struct console_command *cmd)
{
	int (*own)(void *, uint64_t) = c->hooks.own[cmd->what];
	int rc;

	if (!own)
		return console_fail(c, -EOPNOTSUPP, "there is no such command here");
	*c->error = '\0';
	rc = own(c->hooks.arg, cmd->n_numbers ? cmd->number[0] : UINT64_MAX);
	return rc && !*c->error ? console_fail(c, rc, "%s", strerror(-rc)) : rc;
}

int console_line(struct console *c, const char *line, size_t len)
{
	struct console_command cmd;
	int rc = console_parse(c, line, len, &cmd);

	if (rc)
		return rc;
	return cmd.what < CONSOLE_OWN ? ask_owner(c, &cmd) : carry_out_command[cmd.what](c, &cmd);
}

int console_normalise(struct console *c, const char *line, size_t len, char out[CONSOLE_LINE])
{
	struct console_command cmd;
	int rc = console_parse(c, line, len, &cmd);

	return rc ? rc : console_write(c, &cmd, out);
}
