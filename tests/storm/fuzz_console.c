// SPDX-License-Identifier: BSD-3-Clause
/*
 * libFuzzer: lines of a console, one after the other, on a small subnet.  What is refused has a
 * reason, of one line.  What a netlist would keep reads back as itself, and is taken as the line
 * was.  Cables always have two ends.
 */
#include <stdlib.h>
#include <string.h>

#include "subnet/console.h"
#include "topo/netlist.h"

static const char net[] =
	"Hca 2 \"H0\" # \"host zero\"\n[1] \"S0\"[1]\n[2] \"S1\"[3]\n@[1] \"gate\"\n\n"
	"Hca 1 \"H1\"\n[1] \"S1\"[1]\n\n"
	"Switch 4 \"S0\" # \"S0\" enhanced port 0 lid 3 lmc 0\n"
	"[1] \"H0\"[1]\n[2] \"S1\"[2]\n\n"
	"Switch 4 \"S1\"\n[1] \"H1\"[1]\n[2] \"S0\"[2]\n[3] \"H0\"[2]\n\n"
	"Rt 2 \"R#0\"\n";

static bool deliver(void *arg, uint32_t node, uint8_t port, unsigned qp,
	const struct mad_addr *from, const uint8_t mad[MAD_SIZE])
{
	(void)arg, (void)node, (void)port, (void)qp, (void)from, (void)mad;
	return true;
}

static uint64_t now(void *arg)
{
	(void)arg;
	return 1;
}

static void print(void *arg, const char *text, size_t len)
{
	(void)arg;
	if (!len || memchr(text, '\0', len))
		abort();
}

static int own(void *arg, uint64_t n)
{
	(void)arg;
	return n & 1 ? -1 : 0;
}

static void verify_error(const struct console *c)
{
	if (!*c->error || strchr(c->error, '\n') || strlen(c->error) >= sizeof c->error)
		abort();
}

/* Both ends of each cable know of it. */
static void verify(const struct console *c)
{
	for (uint32_t n = 0; n < c->topo->n_nodes; n++)
		for (unsigned p = 1; p <= c->topo->nodes[n].n_ports; p++) {
			uint8_t peer_port, back_port;
			uint32_t peer, back;

			if (subnet_cable(c->subnet, n, p, &peer, &peer_port))
				continue;
			if (subnet_cable(c->subnet, peer, peer_port, &back, &back_port) ||
				back != n || back_port != p)
				abort();
		}
}

static void take_line(struct console *c, const char *line, size_t len)
{
	char kept[CONSOLE_LINE], again[CONSOLE_LINE];
	int n = console_normalise(c, line, len, kept), rc;

	if (n >= CONSOLE_LINE || (n >= 0 && strlen(kept) != (size_t)n))
		abort();
	if (n > 0 && (console_normalise(c, kept, n, again) != n || strcmp(kept, again) != 0))
		abort();
	*c->error = '\0';
	rc = console_line(c, line, len);
	if (rc > 0 || (n < 0 && rc != n))
		abort();
	if (rc)
		verify_error(c);
	verify(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct subnet_ops ops = {deliver, NULL, now, NULL};
	const char *at = (const char *)data, *end = at + size;
	struct console c = {.hooks = {print, {own, own, NULL, own, own}, NULL}};
	char error[TOPO_ERROR];
	struct netlist n;

	if (netlist_parse(&n, "net", net, sizeof net - 1, error) ||
		subnet_create(&c.subnet, &n.topo, &ops))
		abort();
	c.topo = &n.topo;
	while (at < end) {
		const char *eol = memchr(at, '\n', end - at);
		const char *next = eol ? eol + 1 : end;

		take_line(&c, at, next - at);
		at = next;
	}
	subnet_free(c.subnet);
	netlist_free(&n);
	return 0;
}
