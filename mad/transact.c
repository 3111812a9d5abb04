// SPDX-License-Identifier: BSD-3-Clause
#include "mad/transact.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { FIRST_BUCKETS = 64, SPARE_MAX = 4096 };

struct mad_send *mad_send_get(struct mad_agent *a)
{
	struct mad_port *port = a->port;
	struct mad_send *s = port->spare_sends;

	if (s) {
		port->spare_sends = s->next;
		port->n_spare--;
		memset(s, 0, sizeof *s);
	} else {
		s = calloc(1, sizeof *s);
	}
	if (s)
		s->agent = a;
	return s;
}

void mad_send_put(struct mad_port *port, struct mad_send *s)
{
	if (port->n_spare >= SPARE_MAX) {
		free(s);
		return;
	}
	s->next = port->spare_sends;
	port->spare_sends = s;
	port->n_spare++;
}

static struct mad_send **bucket(const struct mad_port *port, uint64_t tid, uint8_t mgmt_class)
{
	return &port->table[hash_mix(tid ^ (uint64_t)mgmt_class << 56) & (port->buckets - 1)];
}

static void insert(struct mad_send *s)
{
	struct mad_send **at = bucket(s->agent->port, s->tid, s->mgmt_class);

	s->next = *at;
	s->link = at;
	if (s->next)
		s->next->link = &s->next;
	*at = s;
}

/* Without memory it stays as it is, and its chains grow. */
static int grow(struct mad_port *port)
{
	unsigned old = port->buckets, n = old ? 2 * old : FIRST_BUCKETS;
	struct mad_send **before = port->table, **table = calloc(n, sizeof(struct mad_send *));

	if (!table)
		return old ? 0 : -ENOMEM;
	port->table = table;
	port->buckets = n;
	for (unsigned i = 0; i < old; i++)
		for (struct mad_send *s = before[i], *next; s; s = next) {
			next = s->next;
			insert(s);
		}
	free(before);
	return 0;
}

int mad_table_add(struct mad_send *s)
{
	struct mad_agent *a = s->agent;
	struct mad_port *port = a->port;
	struct mad_hdr hdr;

	if (port->n_sends >= port->buckets && grow(port))
		return -ENOMEM;
	wire_unpack(&mad_hdr_format, s->mad, &hdr);
	s->tid = hdr.tid;
	s->mgmt_class = hdr.mgmt_class;
	s->method = hdr.method;
	insert(s);
	port->n_sends++;
	s->agent_next = a->sends;
	s->agent_link = &a->sends;
	if (s->agent_next)
		s->agent_next->agent_link = &s->agent_next;
	a->sends = s;
	return 0;
}

void mad_table_del(struct mad_send *s)
{
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
	*s->agent_link = s->agent_next;
	if (s->agent_next)
		s->agent_next->agent_link = s->agent_link;
	s->agent->port->n_sends--;
}

/* The first from s on that is like that. */
static struct mad_send *like(struct mad_send *s, uint64_t tid, uint8_t mgmt_class)
{
	while (s && (s->tid != tid || s->mgmt_class != mgmt_class))
		s = s->next;
	return s;
}

struct mad_send *mad_table_first(const struct mad_port *port, uint64_t tid, uint8_t mgmt_class)
{
	return port->table ? like(*bucket(port, tid, mgmt_class), tid, mgmt_class) : NULL;
}

struct mad_send *mad_table_next(const struct mad_send *s)
{
	return like(s->next, s->tid, s->mgmt_class);
}

struct mad_send *mad_awaiting(
	const struct mad_port *port, const struct mad_addr *from, const struct mad_hdr *hdr)
{
	struct mad_send *s = mad_table_first(port, hdr->tid, hdr->mgmt_class);

	while (s && !(s->response && mad_same_peer(&s->addr, from)))
		s = mad_table_next(s);
	return s;
}

void mad_table_free(struct mad_port *port)
{
	while (port->spare_sends) {
		struct mad_send *s = port->spare_sends;

		port->spare_sends = s->next;
		free(s);
	}
	free(port->table);
	port->table = NULL;
	port->buckets = port->n_spare = 0;
}
