// SPDX-License-Identifier: BSD-3-Clause
/*
 * libFuzzer: any sequence of registrations, sends, MADs that come, time that passes and agents
 * that go while they are called.  Two ports of one layer talk to each other and to themselves.  At
 * the end nothing may be left, and nothing leaks (the sanitizers' work).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "mad/agents.h"
#include "mad/dispatch.h"
#include "mad/loop.h"
#include "mad/transact.h"
#include "wire/rmpp.h"

enum { AGENTS = 8, PORTS = 2, SENDS = 16, LONGEST = 20000, SENT_MAX = 20000 };

struct actor {
	struct mad_agent agent; /* first member */
	bool there;
	uint8_t mood; /* what it does when it is called */
};

static struct {
	const uint8_t *data;
	size_t left;
	uint64_t now;
	unsigned sent;
	struct mad_layer layer;
	struct mad_port port[PORTS];
	struct actor actor[AGENTS];
	struct mad_send *sends[SENDS]; /* for cancel and extend */
} f;

static uint8_t message[LONGEST];

static uint8_t byte(void)
{
	if (!f.left)
		return 0;
	f.left--;
	return *f.data++;
}

static uint32_t word(void)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++)
		v = v << 8 | byte();
	return v;
}

static uint64_t now(void *arg)
{
	(void)arg;
	return f.now;
}

/* Some get lost, some come to the other port, some to the same. */
static int transmit(void *arg, const struct mad_addr *to, const uint8_t mad[MAD_SIZE])
{
	struct mad_port *port = arg, *other = &f.port[port == &f.port[0]];
	struct mad_addr from = *to;

	if (f.sent++ > SENT_MAX)
		return -1;
	switch (byte() & 7) {
	case 0:
		return -1;
	case 1:
	case 2:
		from.qp = to->qpn;
		from.qpn = to->qp;
		return mad_queue(other, &from, mad);
	default:
		return mad_loopback(port, to, mad);
	}
}

static void forget_send(const struct mad_send *s)
{
	for (int i = 0; i < SENDS; i++)
		if (f.sends[i] == s)
			f.sends[i] = NULL;
}

static void leave(struct actor *who)
{
	for (int i = 0; i < SENDS; i++)
		if (f.sends[i] && f.sends[i]->agent == &who->agent)
			f.sends[i] = NULL;
	mad_unregister(&who->agent);
	who->there = false;
}

static struct mad_addr some_addr(const struct mad_agent *a)
{
	uint8_t how = byte();
	struct mad_addr to = {.qp = a->reg.qpn,
		.qpn = how & 0x40 ? how & 3 : a->reg.qpn,
		.lid = how & 3,
		.path_bits = how >> 2 & 3,
		.has_grh = how >> 4 & 1};

	to.grh.local[0] = how >> 5 & 1;
	return to;
}

/* Of one of the agents, mostly, and of a class that it may send. */
static size_t make(struct mad_agent *a)
{
	static const uint8_t classes[] = {1, 3, 4, 5, 6, 7, 0x10, 0x12, 0x30, 0x4f, 0x81, 0};
	uint8_t how = byte();
	struct mad_hdr hdr = {.base_version = how != 0xff,
		.mgmt_class = a->reg.mgmt_class && how & 1 ? a->reg.mgmt_class
							   : classes[byte() % sizeof classes],
		.class_version = a->reg.class_version,
		.method = byte(),
		.tid = mad_tid(a, byte() & 3),
		.attr = byte() & 1,
		.attr_mod = byte() & 1};
	struct rmpp_hdr rmpp = {.version = 1 + !(byte() & 0x1f),
		.type = byte() % 6,
		.flags = byte() & 7,
		.status = byte() & 3 ? 0 : byte(),
		.segment = byte(),
		.length = byte()};

	if (how & 2)
		rmpp.segment = word();
	if (how & 4)
		rmpp.length = word();
	memset(message, how, MAD_SIZE);
	memcpy(message + MAD_OUI_AT, "\0\0\1", 3);
	wire_pack(&mad_hdr_format, &hdr, message);
	wire_pack(&rmpp_hdr_format, &rmpp, message);
	return how & 8 ? (word() % LONGEST) : MAD_SIZE;
}

static void send_one(struct mad_agent *a)
{
	struct mad_addr to = some_addr(a);
	size_t len = make(a);
	uint8_t how = byte();
	struct mad_send **slot = &f.sends[how % SENDS];

	if (how & 0x10)
		mad_own_tid(a, message);
	if (how & 0x20 && mad_check_duplicate(a, &to, message))
		return;
	if (*slot || how & 0x40)
		(void)mad_post(a, &to, message);
	else if (how & 0x80)
		(void)mad_send_long(
			a, &to, message, len, byte() & 7, byte() & 3, how & 8, NULL, slot);
	else
		(void)mad_send(a, &to, message, byte() & 7, byte() & 3, how & 8, NULL, slot);
}

/* An agent may send, or go, while it is called. */
static void behave(struct mad_agent *a)
{
	struct actor *who = (struct actor *)a;

	switch (who->mood & 3) {
	case 1:
		send_one(a);
		break;
	case 2:
		leave(who);
		break;
	default:
		break;
	}
}

static void on_receive(
	struct mad_agent *a, const struct mad_addr *from, const uint8_t mad[MAD_SIZE])
{
	(void)from, (void)mad;
	behave(a);
}

static uint8_t sum(const uint8_t *msg, size_t len)
{
	uint8_t all = 0;

	while (len--)
		all += *msg++;
	return all;
}

static void on_long(
	struct mad_agent *a, const struct mad_addr *from, const uint8_t *msg, size_t len)
{
	(void)from;
	a->arg = (void *)(uintptr_t)sum(msg, len); /* all of it can be read */
	behave(a);
}

static void on_done(struct mad_agent *a, struct mad_send *s, int status, const uint8_t *response)
{
	/* A long message without a timeout is not answered once all of it has arrived. */
	const bool may_lack = status || !s->response || (s->rmpp && !s->timeout_ms);

	if (response ? status || !s->response || !s->response_from : !may_lack)
		abort();
	if (response)
		a->arg = (void *)(uintptr_t)sum(response, s->response_len);
	forget_send(s);
	behave(a);
}

static void come_or_go(struct actor *who)
{
	static const uint8_t classes[] = {0, 1, 3, 4, 6, 7, 0x10, 0x12, 0x30, 0x4f, 0x81, 0x50};
	uint8_t how = byte();

	if (who->there) {
		leave(who);
		return;
	}
	who->mood = byte();
	who->agent = (struct mad_agent){.reg = {.qpn = how >> 4 & 1,
						.mgmt_class = classes[(how & 15) % sizeof classes],
						.class_version = how >> 5 & 1,
						.methods = {word(), byte()},
						.oui = 1 + (how >> 7),
						.rmpp_version = how >> 6 & 1,
						.user_rmpp = who->mood >> 7},
		.receive = on_receive,
		.receive_long = on_long,
		.done = on_done,
		.file = who->mood & 0x40 ? &f : NULL};
	who->there = !mad_register(&f.port[who->mood >> 5 & 1], &who->agent);
}

static void come(struct mad_agent *a)
{
	struct mad_addr from = some_addr(a);

	(void)make(a);
	mad_receive(a->port, &from, message);
}

static void act(void)
{
	uint8_t op = byte();
	struct actor *who = &f.actor[op % AGENTS];
	struct mad_send **slot = &f.sends[byte() % SENDS];

	if (op >> 5 == 0 || (!who->there && op & 8)) {
		come_or_go(who);
	} else if (op >> 5 == 1) {
		f.now += (uint64_t)byte() * (op & 16 ? NSEC_PER_SEC : NSEC_PER_MSEC);
	} else if (op >> 5 == 2) {
		mad_run(&f.layer, byte());
	} else if (op >> 5 == 3 && *slot) {
		if (op & 16)
			mad_cancel(*slot), *slot = NULL;
		else
			mad_extend(*slot, byte());
	} else if (who->there && op >> 5 < 6) {
		send_one(&who->agent);
	} else if (who->there) {
		come(&who->agent);
	}
}

static void end(void)
{
	for (int i = 0; i < PORTS; i++)
		mad_port_end(&f.port[i]);
	if (f.layer.n_sends || f.layer.n_recvs || f.layer.n_done || f.layer.loop_head)
		abort();
	mad_layer_end(&f.layer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	memset(&f, 0, sizeof f);
	f.data = data;
	f.left = size;
	f.now = NSEC_PER_SEC;
	f.layer.now = now;
	mad_layer_init(&f.layer);
	for (int i = 0; i < PORTS; i++)
		f.port[i] = (struct mad_port){.layer = &f.layer,
			.transmit = transmit,
			.arg = &f.port[i],
			.has_qp0 = i,
			.lid = i ? 4 : 0,
			.lmc = i};
	while (f.left)
		act();
	mad_run(&f.layer, 1000);
	end();
	return 0;
}
