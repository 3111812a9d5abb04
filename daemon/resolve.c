// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/resolve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/gid.h"
#include "fabric/page.h"
#include "roce/port/route.h"

/* Values of enum rdma_cm_event_type, which belongs to a layer above. */
enum { EV_ADDR_RESOLVED = 0, EV_ADDR_ERROR = 1 };

enum { RESOLVES_MAX = 1 << 14 };

struct resolve {
	struct deadline deadline; /* first member */
	struct resolve *next;
	uint32_t owner;
	struct cm_resolve_call call;
	struct route route;
};

void resolver_start(struct resolver *r, struct server *s, struct channels *channels)
{
	*r = (struct resolver){.server = s, .channels = channels, .news.fd = -1};
}

/* ---- answers ---- */

static void tell(struct resolver *r, uint32_t owner, const struct cm_resolve_call *call,
	const struct route *route, int status)
{
	struct cm_event e = {
		.type = status ? EV_ADDR_ERROR : EV_ADDR_RESOLVED,
		.status = status,
		.handle = call->handle,
		.src = call->src,
		.dst = call->dst,
	};

	e.src.family = call->dst.family;
	memcpy(e.src.gid, route->src, sizeof e.src.gid);
	r->timed_out += status == -ETIMEDOUT;
	channels_put(r->channels, owner, call->channel, &e, cm_event_size(&e));
}

/* Takes it out of the list and frees it. */
static void end(struct resolver *r, struct resolve *q)
{
	struct resolve **link = &r->list;

	while (*link != q)
		link = &(*link)->next;
	*link = q->next;
	deadline_clear(&r->deadlines, &q->deadline);
	free(q);
	r->n--;
}

static void answer(struct resolver *r, struct resolve *q, int status)
{
	tell(r, q->owner, &q->call, &q->route, status);
	end(r, q);
}

/* ---- news ---- */

static void on_neighbour(void *arg, uint32_t ifindex, const uint8_t next_hop[16], bool known)
{
	struct resolver *r = arg;

	for (struct resolve *q = known ? r->list : NULL, *next; q; q = next) {
		next = q->next;
		if (q->route.ifindex == ifindex &&
			memcmp(q->route.next, next_hop, sizeof q->route.next) == 0)
			answer(r, q, 0);
	}
}

/* Answers if its next hop is known now. */
static void look_at(struct resolver *r, struct resolve *q)
{
	bool known;

	if (!route_look_at_neighbour(&q->route, &known) && known)
		answer(r, q, 0);
}

static void look_at_all(struct resolver *r)
{
	for (struct resolve *q = r->list, *next; q; q = next) {
		next = q->next;
		look_at(r, q);
	}
}

static void on_news(struct server *s, struct watch *w, uint32_t events)
{
	struct resolver *r = (struct resolver *)w;

	(void)events;
	if (!route_read_neighbours(w->fd, on_neighbour, r))
		look_at_all(r);
	s->deliver(s);
}

static int watch_news(struct resolver *r)
{
	int ret;

	if (r->news.fd >= 0)
		return 0;
	r->news = (struct watch){on_news, route_watch_neighbours()};
	if (r->news.fd < 0) {
		ret = r->news.fd;
		r->news.fd = -1;
		return ret;
	}
	ret = server_watch(r->server, &r->news);
	if (ret)
		server_unwatch(r->server, &r->news);
	return ret;
}

/* ---- questions ---- */

static struct resolve *find(struct resolver *r, uint32_t owner, uint32_t handle)
{
	struct resolve *q = r->list;

	while (q && (q->owner != owner || q->call.handle != handle))
		q = q->next;
	return q;
}

static uint64_t limit(int32_t timeout_ms)
{
	return clock_ns() + (timeout_ms > 0 ? timeout_ms : 0) * (uint64_t)NSEC_PER_MSEC;
}

static int add(struct resolver *r, uint32_t owner, const struct cm_resolve_call *call,
	const struct route *route)
{
	struct resolve *q = r->n < RESOLVES_MAX ? calloc(1, sizeof *q) : NULL;
	int ret;

	if (!q)
		return -ENOMEM;
	q->owner = owner;
	q->call = *call;
	q->route = *route;
	q->next = r->list;
	r->list = q;
	r->n++;
	ret = deadline_set(&r->deadlines, &q->deadline, limit(call->timeout_ms));
	if (!ret)
		ret = watch_news(r);
	if (ret)
		end(r, q);
	return ret;
}

/* Of an address that is unique in its link alone: the link of our own, if the call names none. */
static uint32_t interface_of(const struct resolver *r, const struct cm_resolve_call *call)
{
	const struct fabric_port *port = &r->server->node->page->port[0];
	bool link_local = gid_is_link_local(call->dst.gid);

	if (!link_local || call->ifindex)
		return call->ifindex;
	for (uint32_t i = 0; i < port->n_gids && i < FABRIC_MAX_GIDS; i++)
		if (call->src.family &&
			!memcmp(port->gid[i].raw, call->src.gid, sizeof call->src.gid))
			return port->gid[i].ifindex;
	return 0;
}

static bool has(const struct fabric_port *port, const uint8_t gid[16])
{
	for (uint32_t i = 0; i < port->n_gids && i < FABRIC_MAX_GIDS; i++)
		if (port->gid[i].type && gid_same(port->gid[i].raw, gid))
			return true;
	return false;
}

/* Can packets to dst have that address of ours?  ifindex: of its interface, 0: of any. */
static bool may_send(const struct fabric_gid *own, const uint8_t dst[16], uint32_t ifindex)
{
	return own->type && (!ifindex || own->ifindex == ifindex) &&
	       gid_is_ipv4(own->raw) == gid_is_ipv4(dst) && !gid_is_loopback(own->raw) &&
	       gid_is_link_local(own->raw) == gid_is_link_local(dst);
}

static bool send_from(const struct fabric_port *port, struct route_want *want, uint32_t ifindex,
	struct route *route)
{
	for (uint32_t i = 0; i < port->n_gids && i < FABRIC_MAX_GIDS; i++) {
		if (!may_send(&port->gid[i], want->dst, ifindex))
			continue;
		memcpy(want->src, port->gid[i].raw, sizeof want->src);
		if (!route_find(want, route))
			return true;
	}
	return false;
}

/*
 * The kernel would send from an address that the device does not have (`weft up --address`): the
 * source is one of the device's, first of that interface.  -ENODEV, as an adapter has it: none
 * leads there.
 */
static int find_way(const struct fabric_port *port, struct route_want *want, struct route *route)
{
	int ret = route_find(want, route);
	struct route ours;

	if (ret || memcmp(want->src, (uint8_t[16]){0}, 16) || has(port, route->src))
		return ret;
	if (!send_from(port, want, route->ifindex, &ours) && !send_from(port, want, 0, &ours))
		return -ENODEV;
	*route = ours;
	return 0;
}

/* Its next hop is not known: the kernel is made to ask for it. */
static void look(struct resolver *r, struct resolve *q, const struct route_want *want)
{
	int ret = route_look_for_neighbour(want, &q->route);

	if (ret) {
		r->unreachable += ret == -EHOSTUNREACH;
		answer(r, q, ret);
		return;
	}
	/* News of before the watch began do not come again. */
	look_at(r, q);
}

int resolver_ask(struct resolver *r, uint32_t owner, const struct cm_resolve_call *call)
{
	struct route_want want = {.ifindex = interface_of(r, call)};
	struct route route;
	int ret;

	resolver_forget(r, owner, call->handle);
	if (call->dst.family != 4 && call->dst.family != 6)
		return -EINVAL;
	r->asked++;
	memcpy(want.dst, call->dst.gid, sizeof want.dst);
	if (call->src.family)
		memcpy(want.src, call->src.gid, sizeof want.src);
	ret = find_way(&r->server->node->page->port[0], &want, &route);
	r->unreachable += ret == -EHOSTUNREACH || ret == -ENODEV;
	if (ret && ret != -ENODEV)
		return ret == -EHOSTUNREACH ? route.refusal : ret;
	if (ret || route.next_known) {
		tell(r, owner, call, &route, ret);
		return 0;
	}
	ret = add(r, owner, call, &route);
	if (!ret)
		look(r, r->list, &want);
	return ret;
}

void resolver_forget(struct resolver *r, uint32_t owner, uint32_t handle)
{
	struct resolve *q = find(r, owner, handle);

	if (q)
		end(r, q);
}

void resolver_migrate(struct resolver *r, uint32_t owner, uint32_t handle, uint32_t channel)
{
	struct resolve *q = find(r, owner, handle);

	if (q)
		q->call.channel = channel;
}

void resolver_owner_gone(struct resolver *r, uint32_t owner)
{
	for (struct resolve *q = r->list, *next; q; q = next) {
		next = q->next;
		if (q->owner == owner)
			end(r, q);
	}
}

/* ---- time ---- */

void resolver_run(struct resolver *r)
{
	uint64_t now = clock_ns();
	struct deadline *d;

	while ((d = deadline_pop(&r->deadlines, now)))
		answer(r, (struct resolve *)d, -ETIMEDOUT);
	/* Not while it is read.  Of what nobody waits for we do not wake up. */
	if (!r->list && r->news.fd >= 0)
		server_unwatch(r->server, &r->news);
}

uint64_t resolver_next(const struct resolver *r)
{
	return deadline_next(&r->deadlines);
}

void resolver_status(const struct resolver *r, json_t *o)
{
	json_object_set_new(o, "resolves", json_integer(r->asked));
	json_object_set_new(o, "resolves_waiting", json_integer(r->n));
	json_object_set_new(o, "resolves_unreachable", json_integer(r->unreachable));
	json_object_set_new(o, "resolves_timed_out", json_integer(r->timed_out));
}
