// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/unix_names.h"
#include "daemon/process.h"
#include "wire/roce.h"

/*
 * A program this often, and a few at once after a pause: a process that comes is not to wait for
 * the program that opened the port.
 */
static const uint64_t steer_every_ns = 100 * NSEC_PER_MSEC;
static const uint64_t steer_ahead_ns = 400 * NSEC_PER_MSEC;
static const uint64_t retry_every_ns = NSEC_PER_SEC;
/* So long those whom a predecessor served have, before steering is made anew without them. */
static const uint64_t come_within_ns = NSEC_PER_SEC;

/* ---- when something is due ---- */

static bool awaits_others(const struct wire_port *w, uint64_t now)
{
	if (!w->adopted_ns || now >= w->adopted_ns + come_within_ns)
		return false;
	for (uint32_t i = 1; i < w->group.n; i++)
		if (w->group.seat[i]->left && wire_seat_held(w->group.seat[i]))
			return true;
	return false;
}

static bool is_wanted(const struct wire_port *w)
{
	if (w->held)
		return true;
	for (uint32_t i = 1; i < w->group.n; i++) {
		const struct wire_seat *seat = w->group.seat[i];

		if (seat->owner || (seat->left && wire_seat_held(seat)))
			return true;
	}
	return false;
}

static uint64_t steer_at(const struct wire_port *w, uint64_t now)
{
	if (awaits_others(w, now))
		return w->adopted_ns + come_within_ns;
	return w->steer_ns > steer_ahead_ns ? w->steer_ns - steer_ahead_ns : 0;
}

static bool steer_due(const struct wire_port *w)
{
	uint64_t now = clock_ns();

	return w->group.open && w->stale && steer_at(w, now) <= now;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return !a || b < a ? b : a;
}

static void arm(struct server *s)
{
	struct wire_port *w = s->wire;
	struct itimerspec it = {0};
	uint64_t when = 0;

	if (w->group.open && w->stale)
		when = steer_at(w, clock_ns());
	if (w->group.open && w->unwanted_ns)
		when = earlier(when, w->unwanted_ns + s->idle_ns);
	if (!w->group.open && (w->held || w->waiting))
		when = earlier(when, w->tried_ns + retry_every_ns);
	it.it_value.tv_sec = when / NSEC_PER_SEC;
	it.it_value.tv_nsec = when % NSEC_PER_SEC;
	timerfd_settime(w->timer.fd, TFD_TIMER_ABSTIME, &it, NULL);
}

/* ---- steering ---- */

static uint32_t seat_of(void *arg, uint32_t attach_id)
{
	const struct process *p = process_find(arg, attach_id);

	return p && p->wire ? p->wire->seat->index : 0;
}

static void drain_free(const struct wire_group *g)
{
	for (uint32_t i = 1; i < g->n; i++)
		if (!g->seat[i]->owner && !wire_seat_held(g->seat[i]))
			wire_seat_drain(g->seat[i]);
}

static void steer(struct server *s)
{
	struct wire_port *w = s->wire;
	uint64_t now;
	int ret;

	wire_ranges_make(&w->ranges, &s->leases, seat_of, s);
	ret = wire_ranges_attach(&w->ranges, &w->group);
	if (ret)
		log_line(LOG_LVL_WARN,
			"cannot steer packets to processes (%s): each comes to weftd first",
			strerror(-ret));
	w->stale = false;
	now = clock_ns();
	w->steer_ns = (w->steer_ns > now ? w->steer_ns : now) + steer_every_ns;
	/* Nothing more comes there. */
	drain_free(&w->group);
}

/* At once, if the last time is long enough ago. */
static void steer_soon(struct server *s)
{
	struct wire_port *w = s->wire;

	w->stale = true;
	if (steer_due(w))
		steer(s);
	arm(s);
}

/* ---- opening and closing ---- */

static void on_asked(struct server *s, struct watch *w, uint32_t events)
{
	(void)s, (void)events;
	unix_name_greet(w->fd);
}

static int watch_all(struct server *s)
{
	struct wire_port *w = s->wire;
	int ret = 0;

	w->shown = (struct watch){on_asked, w->group.shown};
	if (w->shown.fd < 0)
		log_line(LOG_LVL_INFO, "cannot show others that UDP port %d is ours: %s", ROCE_PORT,
			strerror(-w->shown.fd));
	else
		ret = server_watch(s, &w->shown);
	for (int i = 0; !ret && i < WIRE_FAMILIES; i++) {
		w->socket[i] = (struct watch){wire_read_socket, w->group.seat[0]->fd[i]};
		if (w->socket[i].fd >= 0)
			ret = server_watch(s, &w->socket[i]);
	}
	return ret;
}

/* Processes may have duplicates of these descriptors: epoll would keep them. */
static void close_port(struct server *s)
{
	struct wire_port *w = s->wire;

	for (int i = 0; i < WIRE_FAMILIES; i++) {
		int fd = w->group.seat[0]->fd[i];

		if (fd < 0)
			continue;
		server_unwatch(s, &w->socket[i]);
		w->group.seat[0]->fd[i] = -1;
	}
	if (w->group.shown >= 0)
		server_unwatch(s, &w->shown);
	w->group.shown = -1;
	wire_group_close(&w->group);
	w->unwanted_ns = w->adopted_ns = 0;
	w->ranges.n = 0;
}

static void opened(struct server *s)
{
	struct wire_port *w = s->wire;
	int ret = watch_all(s);

	if (ret)
		log_line(LOG_LVL_ERROR, "cannot watch UDP port %d: %s", ROCE_PORT, strerror(-ret));
	w->unwanted_ns = 0;
	steer_soon(s);
}

/* One line each time the reason is another. */
static void note_failure(struct server *s, int err)
{
	struct wire_port *w = s->wire;
	char where[PORT_PLACE_TEXT], before[sizeof w->holder.text];
	bool same = w->failed == err;

	port_place_text(&s->place, where);
	strcpy(before, w->holder.text);
	w->holder = (struct port_holder){.kind = PORT_HOLDER_OTHER};
	if (err == -EADDRINUSE)
		port_holder_find(&s->place, &w->holder);
	if (same && strcmp(before, w->holder.text) == 0)
		return;
	w->failed = err;
	if (err == -EADDRINUSE)
		log_line(LOG_LVL_WARN, "UDP port %d of address %s is taken by %s", ROCE_PORT, where,
			w->holder.text);
	else
		log_line(LOG_LVL_WARN, "cannot open UDP port %d of address %s: %s", ROCE_PORT,
			where, strerror(-err));
}

static int open_port(struct server *s)
{
	struct wire_port *w = s->wire;
	int ret;

	if (w->group.open)
		return 0;
	ret = wire_group_open(&w->group, &s->place);
	w->tried_ns = clock_ns();
	if (ret) {
		note_failure(s, ret);
		return ret;
	}
	if (w->failed)
		log_line(LOG_LVL_WARN, "UDP port %d is ours now", ROCE_PORT);
	w->failed = 0;
	opened(s);
	return 0;
}

static void on_timer(struct server *s, struct watch *timer, uint32_t events)
{
	struct wire_port *w = s->wire;
	uint64_t expirations, now = clock_ns();

	(void)events;
	(void)!read(timer->fd, &expirations, sizeof expirations);
	if (!w->group.open && (w->held || w->waiting))
		open_port(s);
	if (w->group.open && w->unwanted_ns && now >= w->unwanted_ns + s->idle_ns) {
		if (is_wanted(w))
			w->unwanted_ns = 0;
		else
			close_port(s);
	}
	if (steer_due(w))
		steer(s);
	arm(s);
}

/* Somebody needs it no more. */
static void look_whether_wanted(struct server *s)
{
	struct wire_port *w = s->wire;

	if (w->group.open && !w->unwanted_ns && !is_wanted(w))
		w->unwanted_ns = clock_ns();
}

/* ---- seats ---- */

static void seat_leave(struct server *s, struct process *p)
{
	struct wire_member *m = p->wire;

	if (m->hand.fd >= 0)
		server_unwatch(s, &m->hand);
	m->seat->owner = 0;
	free(m);
	p->wire = NULL;
}

/* Takes hand over on success. */
static int seat_take(struct server *s, struct process *p, struct wire_seat *seat, int hand)
{
	struct wire_member *m = malloc(sizeof *m);
	int ret = -ENOMEM;

	if (m) {
		*m = (struct wire_member){{wire_read_hand, hand}, seat};
		ret = server_watch(s, &m->hand);
	}
	if (ret) {
		free(m);
		return ret;
	}
	seat->owner = p->id;
	seat->left = false;
	p->wire = m;
	s->wire->waiting -= p->waits_for_wire;
	p->waits_for_wire = false;
	s->wire->unwanted_ns = 0;
	return 0;
}

static void give_sockets(const struct wire_port *w, const struct wire_seat *seat, struct reply *r)
{
	struct proto_wire_joined *j = &r->payload.wire_joined;
	static const uint32_t flags[WIRE_FAMILIES] = {PROTO_IPV4, PROTO_IPV6};

	j->index = seat->index;
	for (int i = 0; i < WIRE_FAMILIES; i++)
		if (seat->fd[i] >= 0) {
			j->flags |= flags[i];
			r->fds[r->n_fds++] = seat->fd[i];
		}
	r->fds[r->n_fds++] = w->group.keeper.fd[0];
	r->fds[r->n_fds++] = w->group.keeper.fd[1];
}

static int join(struct server *s, struct process *p, struct proto_in *in, struct reply *r)
{
	struct wire_port *w = s->wire;
	struct wire_seat *seat;
	int ret = open_port(s);

	/* They hold its keeper, and the first of them brings it to us. */
	if (ret == -EADDRINUSE && w->holder.kind == PORT_HOLDER_ORPHANS)
		return -EAGAIN;
	if (ret)
		return ret;
	if (p->wire)
		seat_leave(s, p);
	ret = wire_group_seat(&w->group, &seat);
	if (!ret)
		ret = seat_take(s, p, seat, in->fds[0]);
	if (ret)
		return ret;
	proto_take_fd(in, 0);
	give_sockets(w, seat, r);
	return 0;
}

static int adopt(struct server *s, struct proto_in *in)
{
	struct wire_port *w = s->wire;
	const struct keeper keeper = {{in->fds[1], in->fds[2]}};
	int ret;

	if (w->group.open)
		return wire_group_is(&w->group, &keeper) ? 0 : -ESTALE;
	ret = wire_group_adopt(&w->group, &keeper, &s->place);
	if (ret)
		return ret;
	proto_take_fd(in, 1);
	proto_take_fd(in, 2);
	w->adopted_ns = clock_ns();
	w->failed = 0;
	log_line(LOG_LVL_INFO, "took up UDP port %d with %u sockets", ROCE_PORT, w->group.n);
	opened(s);
	return 0;
}

/* A process that has its sockets already, from us or a predecessor. */
static int join_again(struct server *s, struct process *p, struct proto_in *in)
{
	uint32_t index = in->payload.wire_join.index;
	struct wire_seat *seat;
	int ret = adopt(s, in);

	if (ret)
		return ret;
	seat = index && index < s->wire->group.n ? s->wire->group.seat[index] : NULL;
	if (!seat || (seat->owner && seat->owner != p->id) || (p->wire && p->wire->seat != seat))
		return -EEXIST;
	if (p->wire)
		seat_leave(s, p);
	ret = seat_take(s, p, seat, in->fds[0]);
	if (!ret)
		proto_take_fd(in, 0);
	return ret;
}

/* For people; the port's own failure has a holder. */
static void explain(const struct server *s, int err, char why[PROTO_WIRE_WHY])
{
	char where[PORT_PLACE_TEXT];

	port_place_text(&s->place, where);
	switch (err) {
	case -EAGAIN:
	case -EADDRINUSE:
		snprintf(why, PROTO_WIRE_WHY, "UDP port %d of address %s is taken by %s", ROCE_PORT,
			where, s->wire->holder.text);
		return;
	case -EMFILE:
	case -ETOOMANYREFS:
		snprintf(why, PROTO_WIRE_WHY,
			"weftd may not have more descriptors (ulimit -n); run weft down, then weft "
			"up in a shell that allows more");
		return;
	case -ESTALE:
	case -EEXIST:
		snprintf(why, PROTO_WIRE_WHY,
			"weftd was started anew and its port is another; restart the program");
		return;
	default:
		snprintf(why, PROTO_WIRE_WHY, "UDP port %d of address %s: %s", ROCE_PORT, where,
			strerror(-err));
	}
}

int wire_request(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	struct proto_wire_joined *j = &r->payload.wire_joined;
	bool again = in->payload.wire_join.flags & PROTO_AGAIN;
	struct process *p = c->process;

	if (in->n_fds != (again ? 3 : 1) || !wire_is_pair(in->fds[0])) {
		server_refuse(s, REF_BAD_FDS);
		return 1;
	}
	j->result = again ? join_again(s, p, in) : join(s, p, in, r);
	if (j->result) {
		explain(s, j->result, j->why);
		s->wire->waiting += !p->waits_for_wire;
		p->waits_for_wire = true;
	}
	steer_soon(s);
	return 0;
}

void wire_process_gone(struct server *s, struct process *p)
{
	struct wire_port *w = s->wire;

	w->waiting -= p->waits_for_wire;
	if (!p->wire)
		return;
	seat_leave(s, p);
	look_whether_wanted(s);
	steer_soon(s);
}

void wire_leases_changed(struct server *s, const struct process *p)
{
	if (p->wire)
		steer_soon(s);
}

/* ---- weftd's own ---- */

int wire_hold(struct server *s)
{
	int ret;

	s->wire->held++;
	s->wire->unwanted_ns = 0;
	ret = open_port(s);
	arm(s);
	return ret;
}

void wire_release(struct server *s)
{
	s->wire->held--;
	look_whether_wanted(s);
	arm(s);
}

void wire_on_qp1(struct server *s, wire_qp1 qp1)
{
	s->wire->hand.qp1 = qp1;
}

int wire_start(struct server *s)
{
	struct wire_port *w = calloc(1, sizeof *w);

	if (!w)
		return -ENOMEM;
	s->wire = w;
	w->group.lock = w->group.shown = -1;
	w->timer = (struct watch){
		on_timer, timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
	if (w->timer.fd < 0)
		return -errno;
	wire_counters_write(s, true);
	return server_watch(s, &w->timer);
}
