// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/wire_status.h"

#include <errno.h>
#include <string.h>

#include "daemon/wire.h"
#include "wire/roce.h"

static void set_int(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_integer(v));
}

json_t *wire_status_drops(const struct server *s)
{
	const struct wire_hand *h = &s->wire->hand;
	json_t *o = json_object();

	for (int i = 0; i < WIRE_DROP_COUNT; i++)
		set_int(o, wire_drop_name(i), h->drops[i]);
	set_int(o, "no_room", h->overflow[WIRE_IPV4] + h->overflow[WIRE_IPV6]);
	return o;
}

json_t *wire_status_steered(const struct server *s)
{
	const struct wire_ranges *r = &s->wire->ranges;
	json_t *a = json_array();

	for (size_t i = 0; i < r->n; i++) {
		const struct wire_seat *seat = s->wire->group.seat[r->at[i].index];
		json_t *o = json_object();

		set_int(o, "first", r->at[i].first);
		set_int(o, "last", r->at[i].last);
		set_int(o, "index", r->at[i].index);
		set_int(o, "attach_id", seat->owner);
		json_array_append_new(a, o);
	}
	return a;
}

static const char *state_name(const struct wire_port *w)
{
	if (w->group.open)
		return "open";
	if (!w->failed || (!w->held && !w->waiting))
		return "closed";
	return w->failed == -EADDRINUSE ? "taken" : "failed";
}

static uint32_t seated(const struct wire_group *g)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i < g->n; i++)
		n += g->seat[i]->owner != 0;
	return n;
}

json_t *wire_status(const struct server *s)
{
	const struct wire_port *w = s->wire;
	const struct wire_group *g = &w->group;
	char where[PORT_PLACE_TEXT];
	json_t *o = json_object();

	port_place_text(g->open ? &g->place : &s->place, where);
	json_object_set_new(o, "state", json_string(state_name(w)));
	set_int(o, "port", ROCE_PORT);
	json_object_set_new(o, "address", json_string(where));
	if (!g->open && w->failed)
		json_object_set_new(o, "reason",
			json_string(
				w->failed == -EADDRINUSE ? w->holder.text : strerror(-w->failed)));
	set_int(o, "sockets", g->n * (g->has[WIRE_IPV4] + g->has[WIRE_IPV6]));
	set_int(o, "processes", seated(g));
	set_int(o, "waiting", w->waiting);
	set_int(o, "ranges", w->ranges.n);
	set_int(o, "ranges_left_out", w->ranges.left_out);
	set_int(o, "packets", w->hand.got);
	set_int(o, "handed_over", w->hand.handed);
	set_int(o, "sent", w->hand.sent);
	return o;
}
