/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two communication managers on a wire that loses what it is told to, with a clock of its own, and
 * what tests do with them.
 */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/hash.h"
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
	bool crowded;    /* events are counted, and the last one alone is kept */
	uint32_t randoms;
} world;

static inline uint64_t now(void *arg)
{
	(void)arg;
	return world.now;
}

static inline uint32_t random_word(void *arg)
{
	(void)arg;
	return hash_mix(++world.randoms);
}

static inline bool is_local(void *arg, const uint8_t gid[16])
{
	struct side *s = arg;

	return memcmp(gid, s->gid, 16) == 0;
}

static inline int transmit(void *arg, const struct mad_addr *to, const uint8_t mad[MAD_SIZE])
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

static inline void on_event(
	void *arg, uint32_t owner, uint32_t channel, struct cm_event *e, size_t len)
{
	struct side *s = arg;

	assert_int_equal(owner, OWNER);
	assert_int_equal(channel, 1);
	if (world.crowded)
		s->n_events = 0;
	assert_true(s->n_events < EVENTS);
	memcpy(&s->events[s->n_events++], e, len);
}

static inline void fly(void)
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

/* A message of anybody's, that says to be from that address. */
static inline void throw_at(struct side *s, const uint8_t gid[16], const struct cm_msg *m)
{
	struct mad_addr from = mad_addr_of_gids(s->gid, gid);
	uint8_t mad[MAD_SIZE];

	assert_int_equal(cm_msg_pack(m, mad), 0);
	mad_receive(&s->port, &from, mad);
}

static inline void wait_ms(uint64_t ms)
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

static inline void start_side(struct side *s, uint64_t guid)
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
static inline void lose_side(struct side *s)
{
	cm_end(s->cm);
	mad_port_end(&s->port);
	mad_layer_end(&s->layer);
	free(s->cm);
	s->n_events = 0;
}

static inline void begin(void)
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

static inline void end(void)
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

static inline void from_to(struct cm_addr *src, struct cm_addr *dst, int side)
{
	*src = (struct cm_addr){.family = 4};
	*dst = (struct cm_addr){.family = 4};
	memcpy(src->gid, world.side[side].gid, 16);
	memcpy(dst->gid, world.side[!side].gid, 16);
}

static inline struct cm_bind_call bind_call(int side, uint32_t handle, uint16_t port)
{
	struct cm_bind_call c = {.handle = handle, .channel = 1, .ps = 0x0106};
	struct cm_addr dst;

	from_to(&c.src, &dst, side);
	c.src.port = port;
	return c;
}

static inline struct cm_connect_call connect_call(uint32_t handle, uint16_t port)
{
	struct cm_connect_call c = {.handle = handle, .channel = 1, .ps = 0x0106};

	from_to(&c.src, &c.dst, 0);
	c.dst.port = port;
	return c;
}

static inline struct cm_accept_call accept_call(uint32_t handle)
{
	return (struct cm_accept_call){.handle = handle, .channel = 1};
}

static inline int do_bind(int side, const struct cm_bind_call *c)
{
	uint16_t port;
	int ret = cm_bind(world.side[side].cm, OWNER, c, &port);

	assert_true(ret || !c->src.port || port == c->src.port);
	return ret;
}

/* As it was bound. */
static inline int do_listen(int side, const struct cm_bind_call *c, int backlog)
{
	return cm_listen(world.side[side].cm, OWNER,
		&(struct cm_listen_call){c->handle, c->channel, c->flags, backlog});
}

static inline int do_connect(const struct cm_connect_call *c)
{
	uint32_t comm;
	uint16_t own;

	return cm_connect(world.side[0].cm, OWNER, c, &comm, &own);
}

static inline void listen_at(int backlog)
{
	struct cm_bind_call c = bind_call(1, LISTENER, PORT);

	assert_int_equal(do_bind(1, &c), 0);
	assert_int_equal(do_listen(1, &c, backlog), 0);
}

static inline int connect_to(uint16_t port, uint32_t handle)
{
	struct cm_connect_call c = connect_call(handle, port);

	c.param.qpn = 17;
	c.param.responder_resources = 3;
	c.param.initiator_depth = 2;
	c.param.retry_count = 5;
	c.param.rnr_retry = 4;
	c.param.flow_control = 1;
	c.param.tclass = 0x28;
	c.param.flow_label = 0x12345;
	c.param.ack_timeout = 18;
	c.param.priv_len = 2;
	memcpy(c.priv, "hi", 2);
	return do_connect(&c);
}

static inline const struct cm_event *event(int side, unsigned n, uint32_t type)
{
	assert_true(world.side[side].n_events > n);
	assert_int_equal(world.side[side].events[n].type, type);
	return &world.side[side].events[n];
}

static inline uint32_t passive_handle(void)
{
	return event(1, 0, EV_REQUEST)->handle;
}

static inline void accept_it(void)
{
	struct cm_accept_call c = accept_call(passive_handle());

	c.param.qpn = 18;
	c.param.responder_resources = 7;
	c.param.initiator_depth = 6;
	c.param.rnr_retry = 1;
	c.param.srq = 1;
	c.param.priv_len = 3;
	memcpy(c.priv, "you", 3);
	assert_int_equal(cm_accept(world.side[1].cm, OWNER, &c), 0);
}

static inline void settle(void)
{
	fly();
	if (world.times)
		wait_ms(10000); /* two tries */
}
