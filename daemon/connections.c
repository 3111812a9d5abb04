// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/connections.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cm/cm.h"
#include "fabric/page.h"

enum { CHANNEL_BUCKETS = 1 << 12, MADS_AT_A_TIME = 64, QUEUE_MAX = 1 << 16 };
enum { STUCK_NS = 10 * NSEC_PER_MSEC };

struct queued {
	struct queued *next;
	size_t len;
	struct cm_event event; /* the first len bytes of it */
};

struct event_channel {
	struct event_channel *chain;
	uint32_t owner, id;
	struct sockaddr_un addr;
	socklen_t addr_len;
	uint8_t cookie[CM_COOKIE_SIZE];
	uint32_t in_socket; /* events that may be unread there */
	uint32_t unasked;   /* the last of them, after one that will be acknowledged */
	uint32_t n_queued;
	struct queued *head, **tail;
};

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
	int sender;
	struct event_channel *channels[CHANNEL_BUCKETS];
	uint32_t n_channels;
	struct orphan *orphans;
	uint64_t armed; /* when the timer goes off, 0: never */
	uint32_t randoms[64];
	unsigned n_randoms; /* how many of them are left */
	bool stuck;         /* a channel waits for room that no acknowledgement will tell of */
	uint64_t sent, queued, dropped;
};

static struct connections *of(const struct server *s)
{
	return s->connections;
}

/* ---- event channels ---- */

static struct event_channel **bucket(struct connections *k, uint32_t owner, uint32_t id)
{
	return &k->channels[(owner * 0x9e3779b1u ^ id * 0x85ebca6bu) >> 20];
}

_Static_assert(CHANNEL_BUCKETS == 1 << (32 - 20), "the shift above");

static struct event_channel *find_channel(struct connections *k, uint32_t owner, uint32_t id)
{
	struct event_channel *ch = *bucket(k, owner, id);

	while (ch && (ch->owner != owner || ch->id != id))
		ch = ch->chain;
	return ch;
}

static void orphan(struct connections *k, uint32_t owner, const struct cm_event *e)
{
	struct orphan *o;

	k->dropped++;
	if (!e->listen_handle)
		return;
	o = malloc(sizeof *o);
	if (!o)
		return;
	*o = (struct orphan){k->orphans, owner, e->handle};
	k->orphans = o;
}

static void free_channel(struct connections *k, struct event_channel *ch)
{
	while (ch->head) {
		struct queued *q = ch->head;

		ch->head = q->next;
		orphan(k, ch->owner, &q->event);
		free(q);
	}
	k->n_channels--;
	free(ch);
}

static int add_channel(struct connections *k, uint32_t owner, const struct proto_in *in)
{
	const struct cm_channel_call *call = (const struct cm_channel_call *)in->data;
	struct event_channel *ch;

	if (in->len != sizeof *call || call->addr_len == 0 || call->addr_len > CM_SUN_MAX)
		return -EINVAL;
	if (find_channel(k, owner, call->channel))
		return -EEXIST;
	ch = calloc(1, sizeof *ch);
	if (!ch)
		return -ENOMEM;
	ch->owner = owner;
	ch->id = call->channel;
	ch->addr.sun_family = AF_UNIX;
	memcpy(ch->addr.sun_path, call->addr, call->addr_len);
	ch->addr_len = offsetof(struct sockaddr_un, sun_path) + call->addr_len;
	memcpy(ch->cookie, call->cookie, CM_COOKIE_SIZE);
	ch->tail = &ch->head;
	ch->chain = *bucket(k, owner, ch->id);
	*bucket(k, owner, ch->id) = ch;
	k->n_channels++;
	return 0;
}

static int del_channel(struct connections *k, uint32_t owner, uint32_t id)
{
	struct event_channel **link = bucket(k, owner, id), *ch;

	while (*link && ((*link)->owner != owner || (*link)->id != id))
		link = &(*link)->chain;
	ch = *link;
	if (!ch)
		return -ENOENT;
	*link = ch->chain;
	free_channel(k, ch);
	return 0;
}

/*
 * Sends without keeping an fd.  What lies unread in a socket is charged to the socket that sent
 * it: when that is used up, a fresh one, closed at once, has room for one more.
 */
static int send_event(
	struct connections *k, struct event_channel *ch, struct cm_event *e, size_t len)
{
	const struct sockaddr *to = (const struct sockaddr *)&ch->addr;
	int fd, ret = 0;

	memcpy(e->cookie, ch->cookie, CM_COOKIE_SIZE);
	if (ch->unasked + 1 >= CM_ACK_EVERY)
		e->flags |= CM_E_ACK;
	if (sendto(k->sender, e, len, MSG_DONTWAIT | MSG_NOSIGNAL, to, ch->addr_len) >= 0)
		return 0;
	if (errno != EAGAIN && errno != ENOBUFS)
		return -errno;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -EAGAIN;
	if (sendto(fd, e, len, MSG_DONTWAIT | MSG_NOSIGNAL, to, ch->addr_len) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* Sends what the channel's window lets pass. */
static void pump(struct connections *k, struct event_channel *ch)
{
	while (ch->head && ch->in_socket < CM_WINDOW) {
		struct queued *q = ch->head;
		int ret = send_event(k, ch, &q->event, q->len);

		if (ret == -EAGAIN && ch->in_socket) {
			/* Goes on when those are taken, or soon, if nobody will tell. */
			k->stuck |= ch->unasked >= ch->in_socket;
			return;
		}
		ch->head = q->next;
		if (!ch->head)
			ch->tail = &ch->head;
		ch->n_queued--;
		if (ret) {
			orphan(k, ch->owner, &q->event);
		} else {
			ch->in_socket++;
			ch->unasked = q->event.flags & CM_E_ACK ? 0 : ch->unasked + 1;
			k->sent++;
		}
		free(q);
	}
}

static void on_event(void *arg, uint32_t owner, uint32_t channel, struct cm_event *e, size_t len)
{
	struct connections *k = arg;
	struct event_channel *ch = find_channel(k, owner, channel);
	struct queued *q;

	q = ch && ch->n_queued < QUEUE_MAX ? malloc(offsetof(struct queued, event) + len) : NULL;
	if (!q) {
		orphan(k, owner, e);
		return;
	}
	q->next = NULL;
	q->len = len;
	memcpy(&q->event, e, len);
	*ch->tail = q;
	ch->tail = &q->next;
	ch->n_queued++;
	k->queued++;
	pump(k, ch);
}

static void taken(struct connections *k, uint32_t owner, const struct proto_msg *msg)
{
	struct event_channel *ch = find_channel(k, owner, msg->id);

	if (msg->qpn)
		cm_taken(&k->cm, owner, msg->qpn);
	if (!ch)
		return;
	ch->in_socket -= msg->size < ch->in_socket ? msg->size : ch->in_socket;
	if (ch->unasked > ch->in_socket)
		ch->unasked = ch->in_socket;
	pump(k, ch);
}

/* ---- the environment of mad/ and cm/ ---- */

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

	return is_local(k, to->remote) ? mad_loopback(&k->port, to, mad) : -EHOSTUNREACH;
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
	if (k->stuck)
		when = earlier(when, clock_ns() + STUCK_NS);
	arm(k, when);
}

static void pump_stuck(struct connections *k)
{
	if (!k->stuck)
		return;
	k->stuck = false;
	for (int i = 0; i < CHANNEL_BUCKETS; i++)
		for (struct event_channel *ch = k->channels[i]; ch; ch = ch->chain)
			pump(k, ch);
}

static void on_timer(struct server *s, struct watch *w, uint32_t events)
{
	uint64_t expirations;

	(void)events;
	(void)!read(w->fd, &expirations, sizeof expirations);
	of(s)->armed = 0;
	pump_stuck(of(s));
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
	k->sender = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (k->timer.fd < 0 || k->sender < 0)
		return -errno;
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

/* Queued events of an id follow it to its new channel. */
static void move_events(struct connections *k, uint32_t owner, const struct proto_in *in)
{
	const struct cm_call *call = call_of(in);
	struct event_channel *from, *to;

	if (!call)
		return;
	from = find_channel(k, owner, call->backlog);
	to = find_channel(k, owner, call->channel);
	if (!from || !to || from == to)
		return;
	for (struct queued **link = &from->head; *link;) {
		struct queued *q = *link;

		if (q->event.handle != call->handle && q->event.listen_handle != call->handle) {
			link = &q->next;
			continue;
		}
		*link = q->next;
		if (from->tail == &q->next)
			from->tail = link;
		from->n_queued--;
		q->next = NULL;
		*to->tail = q;
		to->tail = &q->next;
		to->n_queued++;
	}
	pump(k, to);
}

/* Events of an id that is no more are nobody's; requests to it are refused. */
static void purge_events(struct connections *k, uint32_t owner, const struct proto_in *in)
{
	const struct cm_call *call = call_of(in);
	struct event_channel *ch = call ? find_channel(k, owner, call->channel) : NULL;

	if (!ch)
		return;
	for (struct queued **link = &ch->head; *link;) {
		struct queued *q = *link;

		if (q->event.handle != call->handle && q->event.listen_handle != call->handle) {
			link = &q->next;
			continue;
		}
		*link = q->next;
		if (ch->tail == &q->next)
			ch->tail = link;
		ch->n_queued--;
		orphan(k, owner, &q->event);
		free(q);
	}
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
		return add_channel(k, owner, in);
	case OP_CM_LEND:
		return lend(k, owner, r);
	case OP_CM_DEL_CHANNEL:
		ret = del_channel(k, owner, in->msg.id);
		break;
	case OP_CM_TAKEN:
		taken(k, owner, &in->msg);
		break;
	default:
		ret = act(k, owner, in, r);
		if (!ret && in->msg.op == OP_CM_MIGRATE)
			move_events(k, owner, in);
		/* One way: nothing is queued about it, as its owner knows. */
		if (!ret && in->msg.op == OP_CM_DESTROY && in->msg.cookie)
			purge_events(k, owner, in);
	}
	run(k);
	return ret;
}

void connections_process_gone(struct server *s, uint32_t attach_id)
{
	struct connections *k = of(s);

	cm_owner_gone(&k->cm, attach_id);
	for (int i = 0; i < CHANNEL_BUCKETS; i++) {
		struct event_channel **link = &k->channels[i], *ch;

		while ((ch = *link)) {
			if (ch->owner != attach_id) {
				link = &ch->chain;
				continue;
			}
			*link = ch->chain;
			free_channel(k, ch);
		}
	}
	run(k);
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
	json_object_set_new(o, "event_channels", json_integer(k->n_channels));
	json_object_set_new(o, "events_sent", json_integer(k->sent));
	json_object_set_new(o, "events_dropped", json_integer(k->dropped));
	json_object_set_new(o, "mads_sent", json_integer(k->port.sent));
	json_object_set_new(o, "mads_resent", json_integer(k->port.resent));
	for (int i = 0; i < CM_N_COUNT; i++)
		json_object_set_new(o, cm_count_name(i), json_integer(k->cm.counts[i]));
	return o;
}
