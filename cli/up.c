// SPDX-License-Identifier: BSD-3-Clause
/* weft up and weft down. */
#include "cli/up.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/common/dirs.h"
#include "cli/common/fabric.h"
#include "cli/common/say.h"
#include "rdv/address.h"
#include "rdv/admin.h"
#include "rdv/topology.h"
#include "roce/port/lock.h"
#include "topo/load.h"
#include "topo/print.h"
#include "wire/roce.h"

static error_t pass_on(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	if (key == ARGP_KEY_INIT)
		state->child_inputs[0] = state->input;
	return key == ARGP_KEY_INIT ? 0 : ARGP_ERR_UNKNOWN;
}

static const struct argp_child fabric_child[] = {{&cli_fabric_argp, 0, NULL, 0}, {0}};
static const struct argp_child named_fabric_child[] = {{&cli_fabric_option_argp, 0, NULL, 0}, {0}};

/* ---- with a topology ---- */

struct up_options {
	const char *fabric, *what, *address;
	bool no_sm;
};

enum { KEY_SM = 256, KEY_ADDRESS };

/* One that a host can have. */
static bool is_address(const char *text)
{
	struct in6_addr a6;
	struct in_addr a4;

	if (inet_pton(AF_INET, text, &a4) == 1)
		return a4.s_addr != htonl(INADDR_ANY) && !IN_MULTICAST(ntohl(a4.s_addr));
	return inet_pton(AF_INET6, text, &a6) == 1 && !IN6_IS_ADDR_UNSPECIFIED(&a6) &&
	       !IN6_IS_ADDR_MULTICAST(&a6);
}

static bool is_here(const char *text)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_DGRAM};
	struct addrinfo *a;
	bool here = true;
	int fd;

	if (getaddrinfo(text, NULL, &hints, &a))
		return true;
	fd = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		here = !bind(fd, a->ai_addr, a->ai_addrlen) || errno != EADDRNOTAVAIL;
	if (fd >= 0)
		close(fd);
	freeaddrinfo(a);
	return here;
}

/* Those of an earlier weftd of this fabric, or another one, keep it from being opened anew. */
static void warn_of_orphans(void)
{
	const struct port_place any = {.any = true};
	struct port_holder holder;

	port_holder_find(&any, &holder);
	if (holder.kind == PORT_HOLDER_ORPHANS)
		fprintf(stderr,
			"weft: UDP port %d is taken by %s; end them, until then other machines are "
			"out of reach\n",
			ROCE_PORT, holder.text);
}

static error_t parse_up(int key, char *arg, struct argp_state *state)
{
	struct up_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->fabric;
		return 0;
	case KEY_SM:
		if (strcmp(arg, "on") && strcmp(arg, "off"))
			cli_usage(state, "bad --sm '%s'; use on or off", arg);
		o->no_sm = !strcmp(arg, "off");
		return 0;
	case KEY_ADDRESS:
		if (!is_address(arg))
			cli_usage(state,
				"bad --address '%s'; use an IPv4 or IPv6 address of this machine",
				arg);
		o->address = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (o->what)
			cli_usage(state, "one FILE or SPEC; '%s' is another", arg);
		o->what = arg;
		return 0;
	case ARGP_KEY_END:
		if (o->no_sm && !o->what)
			cli_usage(state, "--sm is for a FILE or a SPEC");
		if (o->address && o->what)
			cli_usage(state, "--address is for a fabric without FILE or SPEC");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The netlist that weftd is to have: a `do` line is for it. */
static char *netlist_text(const struct netlist *n, size_t *size)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, size);

	if (!f)
		return NULL;
	topo_print_net(&n->topo, f);
	for (uint32_t i = 0; i < n->n_commands; i++)
		fprintf(f, "do %s\n", n->commands[i]);
	if (!fclose(f))
		return text;
	free(text);
	return NULL;
}

static int already_runs(const char *fabric)
{
	return cli_fail("weftd serves fabric '%s' already; 'weft down -F %s' ends it",
		cli_fabric_name(fabric), cli_fabric_name(fabric));
}

/* 0, or an exit code after printing why. */
static int start_topology(const struct up_options *o, int32_t *pid)
{
	char error[TOPO_ERROR], *text;
	struct netlist n;
	size_t size;
	int rc;

	if (topo_load(&n, o->what, error))
		return cli_fail("%s", error);
	text = netlist_text(&n, &size);
	netlist_free(&n);
	if (!text)
		return cli_fail("out of memory");
	rc = rdv_start_topology(o->fabric, text, size, o->no_sm, pid);
	free(text);
	if (rc == -EEXIST)
		return already_runs(o->fabric);
	if (rc == -EBUSY)
		return cli_fail("another 'weft up' is just starting fabric '%s'",
			cli_fabric_name(o->fabric));
	return rc ? EXIT_FAILED : 0;
}

static void say(const char *what, const char *fabric, int32_t pid)
{
	if (pid)
		printf("%s fabric '%s' (pid %d)\n", what, cli_fabric_name(fabric), pid);
	else
		printf("%s fabric '%s'\n", what, cli_fabric_name(fabric));
}

/* 0, or an exit code after printing why. */
static int start_plain(const char *fabric, bool *already, int32_t *pid)
{
	int rc = rdv_ping(fabric, pid);

	*already = !rc;
	if ((rc && rc != -ENOTCONN) || rdv_start(fabric, true, pid))
		return EXIT_FAILED;
	return 0;
}

/* 0, or an exit code after printing why. */
static int start_at(const struct up_options *o, int32_t *pid)
{
	int rc = rdv_start_at(o->fabric, o->address, pid);

	if (rc == -EEXIST)
		return already_runs(o->fabric);
	return rc ? EXIT_FAILED : 0;
}

static int start(const struct up_options *o, bool *already, int32_t *pid)
{
	if (o->what)
		return start_topology(o, pid);
	return o->address ? start_at(o, pid) : start_plain(o->fabric, already, pid);
}

int cmd_up(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"sm", KEY_SM, "on|off", 0,
			"bring the subnet up (the default), or leave that to a subnet manager", 0},
		{"address", KEY_ADDRESS, "ADDRESS", 0,
			"have this address of the machine alone, so that other users can have "
			"others",
			0},
		{0}};
	static const struct argp argp = {.options = options,
		.parser = parse_up,
		.args_doc = "[FILE|SPEC]",
		.doc = "Starts weftd for a fabric, to stay until 'weft down', and waits until it "
		       "answers.\vWith a FILE or SPEC the fabric is a simulated InfiniBand subnet "
		       "of that topology: see weft-topo(1) and weft-fabric(5).  Without, a weftd "
		       "that runs already stays from now on.",
		.children = named_fabric_child};
	struct up_options o = {0};
	struct cli_dirs dirs;
	bool already = false;
	int32_t pid;
	int rc;

	argp_parse(&argp, argc, argv, 0, NULL, &o);
	cli_find_dirs(&dirs);
	rc = start(&o, &already, &pid);
	if (rc)
		return rc;
	say(already ? "weftd already serves" : "weftd serves", o.fabric, pid);
	if (o.address && !is_here(o.address))
		fprintf(stderr,
			"weft: this machine does not have the address %s; other machines are out "
			"of reach until it does\n",
			o.address);
	if (o.address)
		warn_of_orphans();
	return cli_written();
}

int cmd_down(int argc, char **argv)
{
	static const struct argp argp = {.parser = pass_on,
		.doc = "Stops weftd of a fabric.\vThat none runs is no error.",
		.children = fabric_child};
	const char *fabric = NULL;
	int rc;

	argp_parse(&argp, argc, argv, 0, NULL, &fabric);
	rc = rdv_shutdown(fabric);
	if (rc == -ENOTCONN) {
		rdv_forget_topology(fabric);
		rdv_forget_address(fabric);
		printf("no weftd serves fabric '%s'\n", cli_fabric_name(fabric));
	} else if (rc)
		return EXIT_FAILED;
	else
		printf("weftd of fabric '%s' has stopped\n", cli_fabric_name(fabric));
	return cli_written();
}
