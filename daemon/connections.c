// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/connections.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cm/cm.h"
#include "daemon/channel_names.h"
#include "daemon/channels.h"
#include "daemon/process.h"
#include "fabric/page.h"

enum { MADS_AT_A_TIME = 64 };
enum { STUCK_NS = 10 * NSEC_PER_MSEC };

/* A request that nobody will ever see. */
struct orphan {
	struct orphan *next;
	uint32_t owner, handle;
};

struct connections {
	struct watch timer; /* first member */
	struct server *server;
	struct mad_port port;
	struct cm cm;
	struct channels channels;
	struct orphan *orphans;
	uint64_t armed; /* when the timer goes off, 0: never */
	uint32_t randoms[64];
	unsigned n_randoms; /* how many of them are left */
};

static struct connections *of(const struct server *s)
{
	return s->connections;
}

/* ---- the environment of event channels ---- */

static void on_drop(void *arg, uint32_t owner, const struct cm_event *e)
{
	struct connections *k = arg;
	struct orphan *o;

	if (!e->listen_handle)
		return;
	o = malloc(sizeof *o);
	if (!o)
		return;
	*o = (struct orphan){k->orphans, owner, e->handle};
	k->orphans = o;
}

/* ---- the environment of mad/ and cm/ ---- */

static void on_event(void *arg, uint32_t owner, uint32_t channel, struct cm_event *e, size_t len)
{
	struct connections *k = arg;

	channels_put(&k->channels, owner, channel, e, len);
}

static bool is_local(void *arg, const uint8_t gid[16])
{
	const struct connections *k = arg;
	const struct fabric_port *port = &k->server->page->port;

	for (uint32_t i = 0; i < port->n_gids && i < FABRIC_MAX_GIDS; i++)
		if (port->gid[i].type && memcmp(port->gid[i].raw, gid, 16) == 0)
			return true;
	return false;
}

static int transmit(void *arg, const struct mad_addr *to, const uint8_t mad[MAD_SIZE])
{
	struct connections *k = arg;

	return is_local(k, to->grh.remote) ? mad_loopback(&k->port, to, mad) : -EHOSTUNREACH;
}

static uint64_t now(void *arg)
{
	(void)arg;
	return clock_ns();
}

static uint32_t random_word(void *arg)
{
	struct connections *k = arg;
	const size_t size = sizeof k->randoms;

	if (!k->n_randoms && getrandom(k->randoms, size, GRND_NONBLOCK) == (ssize_t)size)
		k->n_randoms = size / sizeof k->randoms[0];
	return k->n_randoms ? k->randoms[--k->n_randoms] : (uint32_t)clock_ns();
}

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

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

/* Delivers what is under way, within bounds, and arms the timer for the rest. */
static void run(struct connections *k)
{
	uint64_t when;

	mad_run(&k->port, MADS_AT_A_TIME);
	cm_run(&k->cm);
	while (k->orphans) {
		struct orphan *o = k->orphans;

		k->orphans = o->next;
		cm_destroy(&k->cm, o->owner, o->handle);
		free(o);
	}
	when = earlier(mad_next(&k->port), cm_next(&k->cm));
	/* Not now: somebody may wait for the answer to the call that we are in. */
	if (k->channels.lost)
		when = earlier(when, clock_ns());
	if (k->channels.stuck)
		when = earlier(when, clock_ns() + STUCK_NS);
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
	k->channels.paths = &s->paths;
	k->channels.drop = on_drop;
	k->channels.arg = k;
	ret = channels_start(&k->channels);
	if (ret)
		return ret;
	k->port = (struct mad_port){.transmit = transmit, .now = now, .arg = k};
	mad_port_init(&k->port);
	k->cm.env = (struct cm_env){
		.event = on_event,
		.is_local = is_local,
		.now = now,
		.random = random_word,
		.arg = k,
	};
	k->cm.ca_guid = be64toh(s->page->node_guid);
	k->cm.epoch = s->epoch;
	ret = cm_init(&k->cm, &k->port);
	return ret ? ret : server_watch(s, &k->timer);
}

/* ---- requests ---- */

/* A struct cm_call of exactly the length that it says. */
static const struct cm_call *call_of(const struct proto_in *in)
{
	const struct cm_call *call = (const struct cm_call *)in->data;

	if (in->len < offsetof(struct cm_call, priv) || call->param.priv_len > CM_PRIV_MAX ||
		in->len != cm_call_size(call))
		return NULL;
	return call;
}

static int act(struct connections *k, uint32_t owner, const struct proto_in *in, struct reply *r)
{
	const struct cm_call *call = call_of(in);
	uint16_t port = 0;
	int ret;

	if (!call)
		return -EINVAL;
	switch (in->msg.op) {
	case OP_CM_BIND:
		ret = cm_bind(&k->cm, owner, call, &port);
		r->msg.qpn = port;
		return ret;
	case OP_CM_LISTEN:
		return cm_listen(&k->cm, owner, call);
	case OP_CM_CONNECT:
		ret = cm_connect(&k->cm, owner, call, &r->msg.id, &port);
		r->msg.qpn = port;
		return ret;
	case OP_CM_ACCEPT:
		return cm_accept(&k->cm, owner, call);
	case OP_CM_READY:
		return cm_ready(&k->cm, owner, call);
	case OP_CM_REJECT:
		return cm_reject(&k->cm, owner, call);
	case OP_CM_NOTIFY:
		return cm_notify(&k->cm, owner, call);
	case OP_CM_DISCONNECT:
		return cm_disconnect(&k->cm, owner, call);
	case OP_CM_MIGRATE:
		return cm_migrate(&k->cm, owner, call);
	case OP_CM_DESTROY:
		return cm_destroy(&k->cm, owner, call->handle);
	default:
		return cm_publish(&k->cm, owner, call);
	}
}

/* What is queued about an id follows it to its new channel, or ends with it. */
static void follow(struct connections *k, uint32_t owner, const struct proto_in *in)
{
	const struct cm_call *call = call_of(in);

	if (call && in->msg.op == OP_CM_MIGRATE)
		channels_move(&k->channels, owner, call->handle, call->channel);
	/* One way: nothing is queued about it, as its owner knows. */
	if (call && in->msg.op == OP_CM_DESTROY && in->msg.cookie)
		channels_purge(&k->channels, owner, call->handle);
}

static void taken(struct connections *k, uint32_t owner, const struct proto_msg *msg)
{
	if (msg->qpn)
		cm_taken(&k->cm, owner, msg->qpn);
	channels_taken(&k->channels, owner, msg->id, msg->size);
}

static int lend(struct connections *k, uint32_t owner, struct reply *r)
{
	uint16_t first = 0;
	int ret = cm_lend(&k->cm, owner, &first);

	r->msg.qpn = first;
	r->msg.size = CM_LOAN;
	return ret;
}

int connections_request(struct server *s, struct session *c, struct proto_in *in, struct reply *r)
{
	struct connections *k = of(s);
	uint32_t owner = c->process->id;
	int ret = 0;

	switch (in->msg.op) {
	case OP_CM_ADD_CHANNEL:
		return channels_add(&k->channels, owner, in->msg.id, in->fds[0]);
	case OP_CM_LEND:
		return lend(k, owner, r);
	case OP_CM_DEL_CHANNEL:
		ret = channels_del(&k->channels, owner, in->msg.id);
		break;
	case OP_CM_WAKE_CHANNEL:
		return channels_wake(&k->channels, owner, in->msg.id);
	case OP_CM_TAKEN:
		taken(k, owner, &in->msg);
		break;
	default:
		ret = act(k, owner, in, r);
		if (!ret)
			follow(k, owner, in);
	}
	run(k);
	return ret;
}

void connections_process_gone(struct server *s, uint32_t attach_id)
{
	struct connections *k = of(s);

	cm_owner_gone(&k->cm, attach_id);
	channels_gone(&k->channels, attach_id);
	run(k);
}

void connections_end(struct server *s)
{
	channel_names_end(&s->paths);
}

static unsigned listeners(const struct cm *cm)
{
	unsigned n = 0;

	for (const struct cm_id *id = cm->ids; id; id = id->next)
		n += id->state == CM_LISTEN;
	return n;
}

json_t *connections_status(const struct server *s)
{
	const struct connections *k = of(s);
	json_t *o = json_object();

	json_object_set_new(o, "ids", json_integer(k->cm.n_ids));
	json_object_set_new(o, "listeners", json_integer(listeners(&k->cm)));
	json_object_set_new(o, "event_channels", json_integer(k->channels.n));
	json_object_set_new(o, "events_sent", json_integer(k->channels.sent));
	json_object_set_new(o, "events_dropped", json_integer(k->channels.dropped));
	json_object_set_new(o, "mads_sent", json_integer(k->port.sent));
	json_object_set_new(o, "mads_resent", json_integer(k->port.resent));
	for (int i = 0; i < CM_N_COUNT; i++)
		json_object_set_new(o, cm_count_name(i), json_integer(k->cm.counts[i]));
	return o;
}
