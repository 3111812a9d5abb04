// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/issm.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/events.h"
#include "daemon/node_ports.h"
#include "daemon/tables/identity.h"
#include "daemon/umad.h"
#include "rdv/file_name.h"

/* One that is open; the first of a port has the bit, the others wait. */
struct issm {
	struct watch sock; /* first member: our end */
	struct issm *next;
	struct node *node;
	uint32_t port; /* from 1; 0 of a switch */
};

static struct issm *first_of(const struct server *s, const struct node *node, uint32_t port)
{
	struct issm *i = s->issms;

	while (i && (i->node != node || i->port != port))
		i = i->next;
	return i;
}

static void set_bit(struct server *s, const struct issm *i, bool on)
{
	if (s->subnet) {
		(on ? node_issm_opened : node_issm_closed)(s, i->node->number, i->port);
		s->deliver(s); /* the built-in subnet manager gives way, or comes back */
		return;
	}
	identity_set_cap(i->node->page, i->port, PORT_CAP_IS_SM, on);
	events_write_files(s);
}

static void grant(const struct issm *i)
{
	(void)!send(i->sock.fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void close_one(struct server *s, struct issm *i)
{
	struct issm **link = &s->issms, *next;
	bool had_it = first_of(s, i->node, i->port) == i;

	while (*link != i)
		link = &(*link)->next;
	*link = i->next;
	next = first_of(s, i->node, i->port);
	if (had_it && next)
		grant(next);
	else if (had_it)
		set_bit(s, i, false);
	server_unwatch(s, &i->sock);
	s->n_files--;
	s->idle_since = clock_ns();
	free(i);
}

/* Nothing can be written to it but by who knows what it is: that is dropped. */
static void on_socket(struct server *s, struct watch *w, uint32_t events)
{
	char bytes[256];

	(void)events;
	if (!recv(w->fd, bytes, sizeof bytes, MSG_DONTWAIT))
		close_one(s, (struct issm *)w);
}

static int make_socket(struct server *s, struct issm *i, int *end)
{
	int pair[2], ret;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	i->sock = (struct watch){on_socket, pair[0]};
	*end = pair[1];
	/* Its opener knows it without. */
	(void)file_name_set(pair[1], FILE_ISSM, i->port - fabric_first_port(i->node->page));
	ret = server_watch(s, &i->sock);
	if (ret) {
		close(pair[0]);
		close(pair[1]);
	}
	return ret;
}

static void enlist(struct server *s, struct issm *i)
{
	struct issm **end = &s->issms;
	bool is_first = !first_of(s, i->node, i->port);

	while (*end)
		end = &(*end)->next;
	*end = i;
	s->n_files++;
	if (!is_first)
		return;
	set_bit(s, i, true);
	grant(i);
}

/* Whether another has the bit, of those whose last fd is not closed. */
static bool is_taken(struct server *s, const struct node *node, uint32_t port)
{
	struct issm *i;

	while ((i = first_of(s, node, port)) && server_hung_up(&i->sock))
		close_one(s, i);
	return i;
}

int issm_request(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	const struct proto_umad_open *call = &in->payload.umad_open;
	struct node *node = umads_find_node(s, call);
	struct issm *i;
	int end = -1, ret;

	(void)c;
	if (!node)
		return -ENODEV;
	if (!(call->flags & PROTO_WAIT) && is_taken(s, node, call->port))
		return -EAGAIN;
	i = malloc(sizeof *i);
	if (!i)
		return -ENOMEM;
	*i = (struct issm){.node = node, .port = call->port};
	ret = make_socket(s, i, &end);
	if (ret) {
		free(i);
		return ret;
	}
	enlist(s, i);
	r->fds[r->n_fds++] = reply_owns(r, end);
	return 0;
}

uint32_t issm_count(const struct server *s)
{
	uint32_t n = 0;

	for (const struct issm *i = s->issms; i; i = i->next)
		n++;
	return n;
}

void issm_end(struct server *s)
{
	while (s->issms)
		close_one(s, s->issms);
}
