// SPDX-License-Identifier: BSD-3-Clause
/*
 * Two communication managers on a wire that loses what it is told to, with a clock of its own:
 * a connection is made and ended, and whichever message is lost on the way, both sides see the
 * same events, once, in the same order.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cm/cm.h"
#include "mad/dispatch.h"

enum { SIDES = 2, EVENTS = 16, OWNER = 7, LISTENER = 1, ACTIVE = 2, PORT = 4711 };

enum {
	EV_REQUEST = 4,
	EV_RESPONSE = 5,
	EV_UNREACHABLE = 7,
	EV_REJECTED = 8,
	EV_ESTABLISHED = 9,
	EV_DISCONNECTED = 10,
	EV_TIMEWAIT = 15,
};

struct side {
	struct mad_layer layer;
	struct mad_port port;
	struct cm *cm;
	uint8_t gid[16];
	struct side *other;
	struct cm_event events[EVENTS];
	unsigned n_events;
};

struct flying {
	struct flying *next;
	struct side *to;
	uint8_t mad[MAD_SIZE];
};

static struct {
	struct side side[SIDES];
	uint64_t now;
	struct flying *head, **tail;
	int sent;        /* messages so far */
	int lose, times; /* the number of the first one that is lost, and how many */
	bool moved;      /* a side has another address since: what goes to the old one is lost */
	int last_attr;
} world;

static uint64_t now(void *arg)
{
	(void)arg;
	return world.now;
}

static uint32_t random_word(void *arg)
{
	(void)arg;
	return 12345;
}

static bool is_local(void *arg, const uint8_t gid[16])
{
	struct side *s = arg;

	return memcmp(gid, s->gid, 16) == 0;
}

static int transmit(void *arg, const struct mad_addr *to, const uint8_t mad[MAD_SIZE])
{
	struct side *s = arg;
	struct flying *f;
	int number = world.sent++;

	if (world.moved && memcmp(to->grh.remote, s->other->gid, 16) != 0)
		return 0;
	assert_memory_equal(to->grh.remote, s->other->gid, 16);
	if (number >= world.lose && number < world.lose + world.times)
		return 0;
	f = calloc(1, sizeof *f);
	f->to = s->other;
	memcpy(f->mad, mad, MAD_SIZE);
	*world.tail = f;
	world.tail = &f->next;
	return 0;
}

static void on_event(void *arg, uint32_t owner, uint32_t channel, struct cm_event *e, size_t len)
{
	struct side *s = arg;

	assert_int_equal(owner, OWNER);
	assert_int_equal(channel, 1);
	assert_true(s->n_events < EVENTS);
	memcpy(&s->events[s->n_events++], e, len);
}

static void fly(void)
{
	while (world.head) {
		struct flying *f = world.head;
		struct mad_addr from;

		world.head = f->next;
		if (!world.head)
			world.tail = &world.head;
		from = mad_addr_of_gids(f->to->gid, f->to->other->gid);
		mad_receive(&f->to->port, &from, f->mad);
		free(f);
	}
}

static void wait_ms(uint64_t ms)
{
	uint64_t end = world.now + ms * NSEC_PER_MSEC;

	while (world.now < end) {
		world.now += 100 * NSEC_PER_MSEC;
		for (int i = 0; i < SIDES; i++) {
			mad_run(&world.side[i].layer, 64);
			cm_run(world.side[i].cm);
		}
		fly();
	}
}

static void start_side(struct side *s, uint64_t guid)
{
	s->layer = (struct mad_layer){.now = now};
	mad_layer_init(&s->layer);
	s->port = (struct mad_port){.layer = &s->layer, .transmit = transmit, .arg = s};
	s->cm = calloc(1, sizeof *s->cm);
	s->cm->env = (struct cm_env){on_event, is_local, now, random_word, s};
	s->cm->ca_guid = guid;
	s->cm->epoch = 3;
	assert_int_equal(cm_init(s->cm, &s->port), 0);
}

/* Its peers hear nothing of that. */
static void lose_side(struct side *s)
{
	cm_end(s->cm);
	mad_port_end(&s->port);
	mad_layer_end(&s->layer);
	free(s->cm);
	s->n_events = 0;
}

static void begin(void)
{
	memset(&world, 0, sizeof world);
	world.now = NSEC_PER_SEC;
	world.tail = &world.head;
	world.lose = -1;
	for (int i = 0; i < SIDES; i++) {
		struct side *s = &world.side[i];

		s->other = &world.side[!i];
		s->gid[10] = s->gid[11] = 0xff;
		s->gid[12] = 10;
		s->gid[15] = i + 1;
		start_side(s, 100 + i);
	}
}

static void end(void)
{
	for (int i = 0; i < SIDES; i++) {
		cm_owner_gone(world.side[i].cm, OWNER);
		lose_side(&world.side[i]);
	}
	while (world.head) {
		struct flying *f = world.head;

		world.head = f->next;
		free(f);
	}
}

static void from_to(struct cm_addr *src, struct cm_addr *dst, int side)
{
	*src = (struct cm_addr){.family = 4};
	*dst = (struct cm_addr){.family = 4};
	memcpy(src->gid, world.side[side].gid, 16);
	memcpy(dst->gid, world.side[!side].gid, 16);
}

static struct cm_bind_call bind_call(int side, uint32_t handle, uint16_t port)
{
	struct cm_bind_call c = {.handle = handle, .channel = 1, .ps = 0x0106};
	struct cm_addr dst;

	from_to(&c.src, &dst, side);
	c.src.port = port;
	return c;
}

static struct cm_connect_call connect_call(uint32_t handle, uint16_t port)
{
	struct cm_connect_call c = {.handle = handle, .channel = 1, .ps = 0x0106};

	from_to(&c.src, &c.dst, 0);
	c.dst.port = port;
	return c;
}

static struct cm_accept_call accept_call(uint32_t handle)
{
	return (struct cm_accept_call){.handle = handle, .channel = 1};
}

static int do_bind(int side, const struct cm_bind_call *c)
{
	uint16_t port;
	int ret = cm_bind(world.side[side].cm, OWNER, c, &port);

	assert_true(ret || !c->src.port || port == c->src.port);
	return ret;
}

/* As it was bound. */
static int do_listen(int side, const struct cm_bind_call *c, int backlog)
{
	return cm_listen(world.side[side].cm, OWNER,
		&(struct cm_listen_call){c->handle, c->channel, c->flags, backlog});
}

static int do_connect(const struct cm_connect_call *c)
{
	uint32_t comm;
	uint16_t own;

	return cm_connect(world.side[0].cm, OWNER, c, &comm, &own);
}

static void listen_at(int backlog)
{
	struct cm_bind_call c = bind_call(1, LISTENER, PORT);

	assert_int_equal(do_bind(1, &c), 0);
	assert_int_equal(do_listen(1, &c, backlog), 0);
}

static int connect_to(uint16_t port, uint32_t handle)
{
	struct cm_connect_call c = connect_call(handle, port);

	c.param.qpn = 17;
	c.param.responder_resources = 3;
	c.param.initiator_depth = 2;
	c.param.retry_count = 5;
	c.param.priv_len = 2;
	memcpy(c.priv, "hi", 2);
	return do_connect(&c);
}

static const struct cm_event *event(int side, unsigned n, uint32_t type)
{
	assert_true(world.side[side].n_events > n);
	assert_int_equal(world.side[side].events[n].type, type);
	return &world.side[side].events[n];
}

static uint32_t passive_handle(void)
{
	return event(1, 0, EV_REQUEST)->handle;
}

static void accept_it(void)
{
	struct cm_accept_call c = accept_call(passive_handle());

	c.param.qpn = 18;
	c.param.priv_len = 3;
	memcpy(c.priv, "you", 3);
	assert_int_equal(cm_accept(world.side[1].cm, OWNER, &c), 0);
}

static void settle(void)
{
	fly();
	if (world.times)
		wait_ms(10000); /* two tries */
}

/* The whole of a connection's life, by the active side's will or the passive side's. */
static void one_life(int who_ends)
{
	const struct cm_event *e;
	uint32_t handle[SIDES];

	listen_at(0);
	assert_int_equal(connect_to(PORT, ACTIVE), 0);
	settle();
	e = event(1, 0, EV_REQUEST);
	assert_int_equal(e->listen_handle, LISTENER);
	assert_int_equal(e->param.qpn, 17);
	assert_int_equal(e->param.responder_resources, 2); /* what the other one initiates */
	assert_int_equal(e->param.initiator_depth, 3);
	assert_int_equal(e->param.retry_count, 5);
	assert_int_equal(e->param.priv_len, 56);
	assert_memory_equal(e->priv, "hi\0", 3);
	assert_int_equal(e->src.port, PORT);
	accept_it();
	settle();
	e = event(0, 0, EV_RESPONSE);
	assert_int_equal(e->param.qpn, 18);
	assert_int_equal(e->param.priv_len, 196);
	assert_memory_equal(e->priv, "you\0", 4);
	assert_int_equal(cm_ready(world.side[0].cm, OWNER, ACTIVE), 0);
	settle();
	event(1, 1, EV_ESTABLISHED);
	handle[0] = ACTIVE;
	handle[1] = passive_handle();
	assert_int_equal(cm_disconnect(world.side[who_ends].cm, OWNER, handle[who_ends]), 0);
	settle();
	event(!who_ends, who_ends ? 1 : 2, EV_DISCONNECTED);
	assert_int_equal(cm_disconnect(world.side[!who_ends].cm, OWNER, handle[!who_ends]), 0);
	settle();
	event(0, 1, EV_DISCONNECTED);
	event(1, 2, EV_DISCONNECTED);
	wait_ms(10000);
	event(0, 2, EV_TIMEWAIT);
	event(1, 3, EV_TIMEWAIT);
	assert_int_equal(world.side[0].n_events, 3);
	assert_int_equal(world.side[1].n_events, 4);
}

static void life(void **state)
{
	(void)state;
	for (int who = 0; who < SIDES; who++) {
		begin();
		one_life(who);
		assert_int_equal(world.sent, 5); /* REQ REP RTU DREQ DREP */
		end();
	}
}

/* Each message in turn is lost, once and twice; the next try makes up for it. */
static void losses(void **state)
{
	(void)state;
	for (int who = 0; who < SIDES; who++)
		for (int lose = 0; lose < 5; lose++) {
			begin();
			world.lose = lose;
			world.times = 1;
			one_life(who);
			assert_true(world.sent > 5);
			end();
		}
}

static void nobody_answers(void **state)
{
	(void)state;
	begin();
	world.lose = 0;
	world.times = 1000;
	assert_int_equal(connect_to(PORT, ACTIVE), 0);
	wait_ms(60000);
	assert_int_equal(world.side[0].n_events, 0);
	wait_ms(10000);
	assert_int_equal(event(0, 0, EV_UNREACHABLE)->status, -ETIMEDOUT);
	assert_int_equal(world.sent, 1 + CM_RETRIES + 1); /* and a REJ */
	end();
}

static void no_listener(void **state)
{
	(void)state;
	begin();
	assert_int_equal(connect_to(PORT, ACTIVE), 0);
	fly();
	assert_int_equal(event(0, 0, EV_REJECTED)->status, CM_REJ_INVALID_SERVICE_ID);
	assert_int_equal(world.side[0].n_events, 1);
	end();
}

/* A request that comes while its server listens anew waits a little, and no longer. */
static void too_early(void **state)
{
	struct cm_bind_call c;

	(void)state;
	begin();
	listen_at(0);
	cm_destroy(world.side[1].cm, OWNER, LISTENER);
	assert_int_equal(connect_to(PORT, ACTIVE), 0);
	fly();
	assert_int_equal(world.side[0].n_events, 0);
	listen_at(0);
	passive_handle();
	cm_destroy(world.side[1].cm, OWNER, LISTENER);
	assert_int_equal(connect_to(PORT, ACTIVE + 1), 0);
	cm_destroy(world.side[0].cm, OWNER, ACTIVE + 1); /* gives up before */
	fly();
	listen_at(0);
	assert_int_equal(world.side[1].n_events, 1);
	cm_destroy(world.side[1].cm, OWNER, LISTENER);
	wait_ms(5000);
	c = bind_call(1, LISTENER, PORT); /* bound alone */
	assert_int_equal(do_bind(1, &c), 0);
	assert_int_equal(connect_to(PORT, ACTIVE + 2), 0);
	fly();
	assert_int_equal(world.side[0].n_events, 0);
	wait_ms(2500);
	assert_int_equal(event(0, 0, EV_REJECTED)->status, CM_REJ_INVALID_SERVICE_ID);
	end();
}

/*
 * A server that has no CPU for a while may listen anew seconds later: a request waits for it, but
 * its requester never sends it again; for one that died a request waits a moment alone.
 */
static void late_listener(void **state)
{
	enum { SLOW, DIES, DIED, WAYS };

	(void)state;
	for (int way = 0; way < WAYS; way++) {
		begin();
		listen_at(0);
		if (way == DIED)
			cm_owner_gone(world.side[1].cm, OWNER);
		else
			cm_destroy(world.side[1].cm, OWNER, LISTENER);
		wait_ms(way == DIED ? 500 : 3500);
		assert_int_equal(connect_to(PORT, ACTIVE), 0);
		fly();
		if (way == DIES)
			cm_owner_gone(world.side[1].cm, OWNER);
		if (way == SLOW) {
			wait_ms(1800);
			listen_at(0);
			passive_handle();
			assert_int_equal(world.sent, 1);
		} else {
			wait_ms(400);
			assert_int_equal(
				event(0, 0, EV_REJECTED)->status, CM_REJ_INVALID_SERVICE_ID);
		}
		end();
	}
}

static void backlog(void **state)
{
	(void)state;
	begin();
	listen_at(2);
	for (int i = 0; i < 3; i++)
		assert_int_equal(connect_to(PORT, ACTIVE + i), 0);
	fly();
	assert_int_equal(world.side[1].n_events, 2);
	assert_int_equal(event(0, 0, EV_REJECTED)->status, CM_REJ_CONSUMER_DEFINED);
	cm_taken(world.side[1].cm, OWNER, passive_handle());
	assert_int_equal(connect_to(PORT, ACTIVE + 3), 0);
	fly();
	assert_int_equal(world.side[1].n_events, 3);
	end();
}

static void slow_consumer(void **state)
{
	(void)state;
	begin();
	listen_at(0);
	assert_int_equal(connect_to(PORT, ACTIVE), 0);
	fly();
	wait_ms(60000); /* an MRA stretches the time; no second request is seen */
	assert_int_equal(world.side[1].n_events, 1);
	assert_int_equal(world.side[0].n_events, 0);
	accept_it();
	fly();
	event(0, 0, EV_RESPONSE);
	end();
}

static void rejected(void **state)
{
	struct cm_reject_call c = {.priv_len = 2, .priv = "no"};
	struct cm_accept_call accept;

	(void)state;
	begin();
	listen_at(0);
	assert_int_equal(connect_to(PORT, ACTIVE), 0);
	fly();
	c.handle = passive_handle();
	assert_int_equal(cm_reject(world.side[1].cm, OWNER, &c), 0);
	fly();
	assert_int_equal(event(0, 0, EV_REJECTED)->status, CM_REJ_CONSUMER_DEFINED);
	assert_int_equal(world.side[0].events[0].param.priv_len, 148);
	assert_memory_equal(world.side[0].events[0].priv, "no\0", 3);
	accept = accept_call(c.handle);
	assert_int_equal(cm_accept(world.side[1].cm, OWNER, &accept), -EINVAL);
	assert_int_equal(cm_reject(world.side[1].cm, OWNER, &c), -EINVAL);
	end();
}

/*
 * At each step of a connect the owner of one side dies: the other is told once, and at once; but
 * not of a request that it has not accepted.
 */
static void deaths(void **state)
{
	(void)state;
	for (int victim = 0; victim < SIDES; victim++)
		for (int step = 0; step < 3; step++) {
			unsigned before;

			begin();
			listen_at(0);
			assert_int_equal(connect_to(PORT, ACTIVE), 0);
			fly();
			if (step > 0) {
				accept_it();
				fly();
			}
			if (step > 1) {
				assert_int_equal(cm_ready(world.side[0].cm, OWNER, ACTIVE), 0);
				fly();
			}
			before = world.side[!victim].n_events;
			cm_owner_gone(world.side[victim].cm, OWNER);
			fly();
			if (victim == 0 && step == 0) {
				assert_int_equal(world.side[1].n_events, before);
			} else {
				assert_int_equal(world.side[!victim].n_events, before + 1);
				event(!victim, before, step == 2 ? EV_DISCONNECTED : EV_REJECTED);
			}
			end();
		}
}

/* Of a request that nobody has accepted no event comes, however it ends; the accept fails. */
static void unaccepted(void **state)
{
	enum { TIMES_OUT, GIVES_UP, REFUSED, LISTENER_GONE, WAYS };

	(void)state;
	for (int way = 0; way < WAYS; way++) {
		struct cm_reject_call reject = {0};
		struct cm_accept_call accept;

		begin();
		listen_at(0);
		assert_int_equal(connect_to(PORT, ACTIVE), 0);
		fly();
		reject.handle = passive_handle();
		accept = accept_call(reject.handle);
		if (way == TIMES_OUT) {
			wait_ms(300000); /* an MRA stretches it */
			event(0, 0, EV_UNREACHABLE);
			cm_destroy(world.side[0].cm, OWNER, ACTIVE);
		} else if (way == GIVES_UP) {
			cm_destroy(world.side[0].cm, OWNER, ACTIVE);
		} else if (way == REFUSED) {
			assert_int_equal(cm_reject(world.side[1].cm, OWNER, &reject), 0);
		} else {
			cm_destroy(world.side[1].cm, OWNER, LISTENER);
		}
		fly();
		if (way == LISTENER_GONE) {
			accept_it(); /* the request is the program's already */
			fly();
			event(0, 0, EV_RESPONSE);
		} else {
			wait_ms(60000);
			assert_int_equal(cm_accept(world.side[1].cm, OWNER, &accept), -EINVAL);
		}
		assert_int_equal(world.side[1].n_events, 1);
		end();
	}
}

/* The peer was started anew and connects from a QP that we hold for connected. */
static void stale(void **state)
{
	(void)state;
	begin();
	listen_at(0);
	assert_int_equal(connect_to(PORT, ACTIVE), 0);
	fly();
	accept_it();
	fly();
	assert_int_equal(cm_ready(world.side[0].cm, OWNER, ACTIVE), 0);
	fly();
	assert_int_equal(connect_to(PORT, ACTIVE + 1), 0); /* the same QP number */
	fly();
	event(1, 2, EV_DISCONNECTED);
	assert_int_equal(event(0, 1, EV_REJECTED)->status, CM_REJ_STALE_CONN);
	end();
}

static void connect_client(unsigned request)
{
	struct cm_accept_call c = accept_call(0);

	assert_int_equal(connect_to(PORT, ACTIVE), 0);
	fly();
	c.handle = event(1, request, EV_REQUEST)->handle;
	assert_int_equal(cm_accept(world.side[1].cm, OWNER, &c), 0);
	fly();
	assert_int_equal(cm_ready(world.side[0].cm, OWNER, ACTIVE), 0);
	fly();
	event(1, request + 1, EV_ESTABLISHED);
}

/* Two clients that have GUID and QP number in common, but not the address, are two. */
static void clones(void **state)
{
	struct side *client = &world.side[0];

	(void)state;
	begin();
	listen_at(0);
	connect_client(0);
	lose_side(client);
	client->gid[14] = 1;
	world.moved = true;
	start_side(client, 100);
	connect_client(2);
	assert_int_equal(world.side[1].n_events, 4);
	assert_int_equal(world.side[1].cm->counts[CM_N_STALE], 0);
	end();
}

/* A client that was started anew is found out although it has the GUID of its server. */
static void stale_of_our_guid(void **state)
{
	struct side *client = &world.side[0];

	(void)state;
	begin();
	lose_side(client);
	start_side(client, 101);
	listen_at(0);
	connect_client(0);
	lose_side(client);
	start_side(client, 101);
	client->cm->next_comm = 77;
	assert_int_equal(connect_to(PORT, ACTIVE), 0);
	fly();
	event(1, 2, EV_DISCONNECTED);
	assert_int_equal(event(0, 0, EV_REJECTED)->status, CM_REJ_STALE_CONN);
	end();
}

/* An id that has ended may connect again; nothing of its first peer stays. */
static void used_again(void **state)
{
	struct cm_connect_call c;

	(void)state;
	begin();
	listen_at(0);
	assert_int_equal(connect_to(PORT, ACTIVE), 0);
	fly();
	accept_it();
	fly();
	event(0, 0, EV_RESPONSE);
	cm_owner_gone(world.side[1].cm, OWNER);
	fly();
	event(0, 1, EV_REJECTED);
	wait_ms(20000);
	event(0, 2, EV_TIMEWAIT);
	c = connect_call(ACTIVE, PORT);
	assert_int_equal(do_connect(&c), 0);
	fly();
	assert_int_equal(event(0, 3, EV_REJECTED)->status, CM_REJ_INVALID_SERVICE_ID);
	end();
}

static void ports(void **state)
{
	struct cm_bind_call a, b;

	(void)state;
	begin();
	a = bind_call(0, 10, PORT);
	b = bind_call(0, 11, PORT);
	assert_int_equal(do_bind(0, &a), 0);
	assert_int_equal(do_bind(0, &a), -EINVAL);
	assert_int_equal(do_bind(0, &b), -EADDRINUSE);
	b.ps = 0x0111; /* another port space */
	assert_int_equal(do_bind(0, &b), 0);
	cm_destroy(world.side[0].cm, OWNER, 10);
	cm_destroy(world.side[0].cm, OWNER, 11);
	a.flags = b.flags = CM_F_REUSEADDR;
	b.ps = a.ps;
	assert_int_equal(do_bind(0, &a), 0);
	assert_int_equal(do_bind(0, &b), 0);
	assert_int_equal(do_listen(0, &a, 0), -EADDRINUSE);
	cm_destroy(world.side[0].cm, OWNER, 11);
	assert_int_equal(do_listen(0, &a, 0), 0);
	assert_int_equal(do_bind(0, &b), -EADDRINUSE);
	end();
}

/* Ports that one process has borrowed are nobody else's, and its own only if it says so. */
static void lent_ports(void **state)
{
	struct cm_bind_call a, b;
	struct cm_connect_call c;
	struct cm *cm;
	uint16_t first, second, port;
	uint32_t comm;

	(void)state;
	begin();
	cm = world.side[0].cm;
	assert_int_equal(cm_lend(cm, OWNER, &first), 0);
	assert_int_equal(cm_lend(cm, OWNER + 1, &second), 0);
	assert_true(second >= first + CM_LOAN || first >= second + CM_LOAN);
	a = bind_call(0, 10, first);
	b = bind_call(0, 11, second);
	assert_int_equal(cm_bind(cm, OWNER, &a, &port), -EADDRINUSE);
	a.flags = b.flags = CM_F_LENT;
	assert_int_equal(cm_bind(cm, OWNER, &a, &port), 0);
	assert_int_equal(cm_bind(cm, OWNER, &b, &port), -EADDRINUSE);
	/* A connect is bound to its borrowed port on the way; one of another's is refused. */
	c = connect_call(12, 0);
	c.src.port = first + 1;
	assert_int_equal(cm_connect(cm, OWNER, &c, &comm, &port), 0);
	assert_int_equal(port, first + 1);
	c = connect_call(13, 0);
	c.src.port = second;
	assert_int_equal(cm_connect(cm, OWNER, &c, &comm, &port), -EADDRINUSE);
	/* All ports that are left, and no one of those that are lent. */
	for (int i = 0; i < CM_LOANS - 2; i++)
		assert_int_equal(cm_lend(cm, OWNER, &port), 0);
	assert_int_equal(cm_lend(cm, OWNER, &port), -EADDRNOTAVAIL);
	a = bind_call(0, 14, 0);
	assert_int_equal(cm_bind(cm, OWNER, &a, &port), -EADDRNOTAVAIL);
	cm_owner_gone(cm, OWNER + 1);
	assert_int_equal(cm_bind(cm, OWNER, &a, &port), 0);
	assert_true(port >= second && port < second + CM_LOAN);
	end();
}

/* The passive side's, for datagrams: bound, and to be listened at. */
static struct cm_bind_call bind_datagrams(uint32_t handle)
{
	struct cm_bind_call c = bind_call(1, handle, PORT);

	c.ps = 0x0111;
	c.flags = CM_F_DATAGRAM;
	assert_int_equal(do_bind(1, &c), 0);
	return c;
}

static void listen_for_datagrams(uint32_t handle)
{
	struct cm_bind_call c = bind_datagrams(handle);

	assert_int_equal(do_listen(1, &c, 0), 0);
}

static void ask_for_datagrams(void)
{
	struct cm_connect_call c = connect_call(ACTIVE, PORT);

	c.ps = 0x0111;
	c.flags = CM_F_DATAGRAM;
	assert_int_equal(do_connect(&c), 0);
	fly();
}

static void datagrams(void **state)
{
	const struct cm_event *e;
	struct cm_accept_call c;

	(void)state;
	begin();
	listen_for_datagrams(LISTENER);
	ask_for_datagrams();
	c = accept_call(passive_handle());
	c.param.qpn = 99;
	c.param.qkey = 0x01234567;
	assert_int_equal(cm_accept(world.side[1].cm, OWNER, &c), 0);
	fly();
	e = event(0, 0, EV_ESTABLISHED);
	assert_int_equal(e->param.qpn, 99);
	assert_int_equal(e->param.qkey, 0x01234567);
	assert_int_equal(e->param.priv_len, 136);
	assert_int_equal(event(1, 0, EV_REQUEST)->param.priv_len, 180);
	assert_int_equal(world.side[1].n_events, 1); /* to accept is enough */
	end();
}

/* Over the wire an answer may get lost: the request comes again, and so does the answer. */
static void datagram_answer_lost(void **state)
{
	struct cm_accept_call c;

	(void)state;
	for (int gone = 0; gone < 2; gone++) {
		begin();
		listen_for_datagrams(LISTENER);
		ask_for_datagrams();
		world.lose = world.sent;
		world.times = 1;
		c = accept_call(passive_handle());
		c.param.qpn = 99;
		assert_int_equal(cm_accept(world.side[1].cm, OWNER, &c), 0);
		if (gone) /* and its id meanwhile, too */
			cm_destroy(world.side[1].cm, OWNER, c.handle);
		fly();
		assert_int_equal(world.side[0].n_events, 0);
		wait_ms(5000);
		assert_int_equal(event(0, 0, EV_ESTABLISHED)->param.qpn, 99);
		assert_int_equal(world.side[1].n_events, 1);
		end();
	}
}

/* The bytes of a REQ as the Linux kernel's look, numbers of one connection aside. */
static void request_bytes(void **state)
{
	static const uint8_t head[] = {1, 7, 2, 3}, timeouts[] = {0, 0, 0, 0xa0};
	static const uint8_t mtu[] = {0xff, 0xff, 0x37, 0xf0, 0xff, 0xff, 0xff, 0xff};
	static const uint8_t ip[] = {0, 0x40};
	struct cm_connect_call c;
	const uint8_t *mad;

	(void)state;
	begin();
	c = connect_call(ACTIVE, PORT);
	c.src.port = 48475;
	c.param = (struct cm_params){.qpn = 17,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry = 7,
		.mtu = 3,
		.flow_label = 0xb2868};
	assert_int_equal(do_connect(&c), 0);
	mad = world.head->mad;
	assert_memory_equal(mad, head, sizeof head);
	assert_int_equal(mad[17], 0x10);
	assert_int_equal(mad[36] << 8 | mad[37], 0x0106); /* the TCP port space */
	assert_memory_equal(mad + 64, timeouts, sizeof timeouts);
	assert_int_equal(mad[71], 20 << 3 | 7);
	assert_memory_equal(mad + 72, mtu, sizeof mtu);
	assert_memory_equal(mad + 80, world.side[0].gid, 16);
	assert_memory_equal(mad + 96, world.side[1].gid, 16);
	assert_int_equal(mad[112] << 12 | mad[113] << 4 | mad[114] >> 4, 0xb2868);
	assert_int_equal(mad[117], 64);
	assert_int_equal(mad[119], 0x98);
	assert_memory_equal(mad + 164, ip, sizeof ip);
	assert_int_equal(mad[166] << 8 | mad[167], 48475);
	assert_memory_equal(mad + 180, world.side[0].gid + 12, 4);
	assert_memory_equal(mad + 196, world.side[1].gid + 12, 4);
	end();
}

/* A request whose IP header says that it is from elsewhere, or for another. */
static void wrong_addresses(void **state)
{
	struct cm_connect_call c;

	(void)state;
	for (int at = 180; at <= 196; at += 16) {
		begin();
		listen_at(1);
		c = connect_call(ACTIVE, PORT);
		assert_int_equal(do_connect(&c), 0);
		world.head->mad[at + 3] ^= 0x40;
		fly();
		assert_int_equal(event(0, 0, EV_REJECTED)->status, CM_REJ_INVALID_GID);
		assert_int_equal(world.side[1].n_events, 0);
		assert_int_equal(world.side[1].cm->counts[CM_N_WRONG_ADDRESS], 1);
		end();
	}
}

/* As unaccepted(): the request is refused, and nothing comes of it on its side. */
static void datagram_unaccepted(void **state)
{
	(void)state;
	for (int gives_up = 0; gives_up < 2; gives_up++) {
		begin();
		listen_for_datagrams(LISTENER);
		ask_for_datagrams();
		if (gives_up)
			cm_destroy(world.side[0].cm, OWNER, ACTIVE);
		else /* as weftd does with what its listener never took */
			cm_destroy(world.side[1].cm, OWNER, passive_handle());
		fly();
		wait_ms(60000);
		assert_int_equal(world.side[1].n_events, 1);
		if (gives_up)
			assert_int_equal(world.side[0].n_events, 0);
		else
			assert_int_equal(event(0, 0, EV_UNREACHABLE)->status, 2);
		end();
	}
}

/*
 * perftest tells of itself at a port of the one space, leaves it, and listens there in the other:
 * a request that comes before is held, too.
 */
static void other_space_before(void **state)
{
	(void)state;
	for (int step = 0; step < 2; step++) {
		begin();
		listen_at(0);
		if (step == 0)
			cm_destroy(world.side[1].cm, OWNER, LISTENER);
		ask_for_datagrams();
		assert_int_equal(world.side[0].n_events, 0);
		if (step == 1)
			cm_destroy(world.side[1].cm, OWNER, LISTENER);
		listen_for_datagrams(LISTENER + 8);
		event(1, 0, EV_REQUEST);
		end();
	}
}

/* As too_early(), for datagrams. */
static void datagram_too_early(void **state)
{
	struct cm_bind_call listener;

	(void)state;
	for (int listens = 0; listens < 2; listens++) {
		begin();
		listener = bind_datagrams(LISTENER);
		ask_for_datagrams();
		assert_int_equal(world.side[0].n_events, 0);
		if (listens) {
			assert_int_equal(do_listen(1, &listener, 0), 0);
			event(1, 0, EV_REQUEST);
		} else {
			wait_ms(2500);
			assert_int_equal(event(0, 0, EV_UNREACHABLE)->status, 1);
		}
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(life),
		cmocka_unit_test(losses),
		cmocka_unit_test(nobody_answers),
		cmocka_unit_test(no_listener),
		cmocka_unit_test(too_early),
		cmocka_unit_test(late_listener),
		cmocka_unit_test(backlog),
		cmocka_unit_test(slow_consumer),
		cmocka_unit_test(rejected),
		cmocka_unit_test(deaths),
		cmocka_unit_test(unaccepted),
		cmocka_unit_test(datagram_unaccepted),
		cmocka_unit_test(stale),
		cmocka_unit_test(clones),
		cmocka_unit_test(stale_of_our_guid),
		cmocka_unit_test(used_again),
		cmocka_unit_test(ports),
		cmocka_unit_test(lent_ports),
		cmocka_unit_test(datagrams),
		cmocka_unit_test(datagram_answer_lost),
		cmocka_unit_test(request_bytes),
		cmocka_unit_test(wrong_addresses),
		cmocka_unit_test(datagram_too_early),
		cmocka_unit_test(other_space_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
