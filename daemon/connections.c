// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/connections.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/deadline.h"
#include "daemon/channels.h"
#include "daemon/cm_requests.h"
#include "daemon/mad_service.h"
#include "daemon/process.h"
#include "daemon/subnet_service.h"
#include "daemon/tables/channel_names.h"
#include "daemon/umad.h"

enum { MADS_AT_A_TIME = 64 };
enum { STUCK_NS = 10 * NSEC_PER_MSEC };

struct connections {
	struct watch timer; /* first member */
	struct mad_service mads;
	struct cm_requests cms;
	struct channels channels;
	struct server *server;
	uint64_t armed; /* when the timer goes off, 0: never */
};

static struct connections *of(const struct server *s)
{
	return s->connections;
}

/* ---- what is under way ---- */

/* A timer that goes off too early does no harm; one that is set anew each time costs a call. */
static void arm(struct connections *k, uint64_t when)
{
	struct itimerspec it = {
		.it_value = {.tv_sec = when / NSEC_PER_SEC, .tv_nsec = when % NSEC_PER_SEC},
	};

	if (!when || (k->armed && k->armed <= when))
		return;
	k->armed = when;
	timerfd_settime(k->timer.fd, TFD_TIMER_ABSTIME, &it, NULL);
}

/* Delivers what is under way, within bounds, and arms the timer for the rest. */
static void run(struct connections *k)
{
	uint64_t when;

	mad_run(&k->mads.layer, MADS_AT_A_TIME);
	cm_requests_run(&k->cms);
	when = subnet_service_run(k->server);
	when = deadline_earlier(
		when, deadline_earlier(mad_next(&k->mads.layer), cm_requests_next(&k->cms)));
	/* Not now: somebody may wait for the answer to the call that we are in. */
	if (k->channels.lost)
		when = deadline_earlier(when, clock_ns());
	when = deadline_earlier(when, umads_run(k->server));
	if (!cm_requests_any(&k->cms) && !k->server->n_files)
		qp1_close(&k->mads.qp1);
	if (k->channels.stuck)
		when = deadline_earlier(when, clock_ns() + STUCK_NS);
	arm(k, when);
}

/*
 * Who has a channel that gets no more events is to know: its connection ends, so that it comes
 * again with its channels, and says it to its program.
 */
static void tell_lost(struct connections *k)
{
	uint32_t owner;

	while ((owner = channels_lost(&k->channels))) {
		const struct process *p = process_find(k->server, owner);

		if (p && p->session)
			shutdown(p->session->sock.fd, SHUT_RDWR);
	}
}

static void on_timer(struct server *s, struct watch *w, uint32_t events)
{
	uint64_t expirations;

	(void)events;
	(void)!read(w->fd, &expirations, sizeof expirations);
	of(s)->armed = 0;
	channels_pump_stuck(&of(s)->channels);
	tell_lost(of(s));
	run(of(s));
}

/* ---- from start to end ---- */

static void on_drop(void *arg, uint32_t owner, const struct cm_event *e)
{
	struct connections *k = arg;

	cm_requests_drop(&k->cms, owner, e);
}

static int start_channels(struct connections *k, struct server *s)
{
	k->channels.paths = &s->paths;
	k->channels.drop = on_drop;
	k->channels.arg = k;
	return channels_start(&k->channels);
}

static void deliver(struct server *s)
{
	run(of(s));
}

int connections_start(struct server *s)
{
	struct connections *k = calloc(1, sizeof *k);
	int ret;

	if (!k)
		return -ENOMEM;
	s->connections = k;
	k->server = s;
	k->timer = (struct watch){
		on_timer, timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
	if (k->timer.fd < 0)
		return -errno;
	ret = start_channels(k, s);
	if (ret)
		return ret;
	mad_service_start(&k->mads, s);
	s->mad_port = &k->mads.port;
	s->deliver = deliver;
	k->cms.channels = &k->channels;
	k->cms.mads = &k->mads;
	ret = cm_requests_start(&k->cms, s, &k->mads.port);
	return ret ? ret : server_watch(s, &k->timer);
}

void connections_process_gone(struct server *s, uint32_t attach_id)
{
	struct connections *k = of(s);

	cm_requests_owner_gone(&k->cms, attach_id);
	channels_gone(&k->channels, attach_id);
	run(k);
}

void connections_end(struct server *s)
{
	channel_names_end(&s->paths);
}

/* ---- requests ---- */

static void taken(struct connections *k, uint32_t owner, const struct proto_cm_taken *call)
{
	if (call->handle)
		cm_taken(&k->cms.cm, owner, call->handle);
	channels_taken(&k->channels, owner, call->channel, call->events);
}

int connections_request(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	struct connections *k = of(s);
	uint32_t owner = c->process->id, channel = in->payload.channel.id;
	int ret = 0;

	switch (in->head.op) {
	case OP_CM_ADD_CHANNEL:
		return channels_add(&k->channels, owner, channel, in->fds[0]);
	case OP_CM_LEND:
		return cm_requests_do(&k->cms, owner, in, r);
	case OP_CM_DEL_CHANNEL:
		ret = channels_del(&k->channels, owner, channel);
		break;
	case OP_CM_WAKE_CHANNEL:
		return channels_wake(&k->channels, owner, channel);
	case OP_CM_TAKEN:
		taken(k, owner, &in->payload.cm_taken);
		break;
	default:
		ret = cm_requests_do(&k->cms, owner, in, r);
	}
	run(k);
	return ret;
}

json_t *connections_status(const struct server *s)
{
	const struct connections *k = of(s);
	json_t *o = json_object();

	cm_requests_status(&k->cms, o);
	json_object_set_new(o, "event_channels", json_integer(k->channels.n));
	json_object_set_new(o, "events_sent", json_integer(k->channels.sent));
	json_object_set_new(o, "events_dropped", json_integer(k->channels.dropped));
	json_object_set_new(o, "mads_sent", json_integer(k->mads.port.sent));
	json_object_set_new(o, "mads_resent", json_integer(k->mads.port.resent));
	cm_requests_counts(&k->cms, o);
	return o;
}

json_t *connections_qp1(const struct server *s)
{
	return qp1_status(&of(s)->mads.qp1);
}

json_t *connections_mad_drops(const struct server *s)
{
	return mad_service_drops(&of(s)->mads);
}
