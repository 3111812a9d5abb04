// SPDX-License-Identifier: BSD-3-Clause
#include "mad/mad.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "mad/rmpp.h"

struct mad_loop {
	struct mad_loop *next;
	struct mad_addr from;
	uint8_t mad[MAD_SIZE];
};

void mad_port_init(struct mad_port *port)
{
	port->loop_tail = &port->loop_head;
}

void mad_port_end(struct mad_port *port)
{
	while (port->agents)
		mad_unregister(port->agents);
	while (port->loop_head) {
		struct mad_loop *l = port->loop_head;

		port->loop_head = l->next;
		free(l);
	}
	deadlines_free(&port->deadlines);
	deadlines_free(&port->recv_deadlines);
}

/* ---- agents ---- */

static bool same_class(const struct mad_agent *a, uint8_t mgmt_class, uint8_t version)
{
	return a->mgmt_class == mgmt_class && a->class_version == version;
}

int mad_register(struct mad_port *port, struct mad_agent *a)
{
	for (struct mad_agent *b = port->agents; b; b = b->next)
		if (same_class(b, a->mgmt_class, a->class_version) &&
			(b->methods[0] & a->methods[0] || b->methods[1] & a->methods[1]))
			return -EEXIST;
	a->port = port;
	a->hi_tid = ++port->next_hi_tid;
	a->next = port->agents;
	port->agents = a;
	return 0;
}

void mad_unregister(struct mad_agent *a)
{
	struct mad_agent **link = &a->port->agents;

	for (struct mad_send *s = a->port->sends, *next; s; s = next) {
		next = s->next;
		if (s->agent == a)
			mad_cancel(s);
	}
	rmpp_forget(a);
	while (*link != a)
		link = &(*link)->next;
	*link = a->next;
}

uint64_t mad_tid(const struct mad_agent *a, uint32_t low)
{
	return (uint64_t)a->hi_tid << 32 | low;
}

/* ---- sending ---- */

int mad_post(struct mad_agent *a, const struct mad_addr *to, const uint8_t mad[MAD_SIZE])
{
	a->port->sent++;
	return a->port->transmit(a->port->arg, to, mad);
}

static void unlink_send(struct mad_send *s)
{
	struct mad_port *port = s->agent->port;

	if (s->prev)
		s->prev->next = s->next;
	else
		port->sends = s->next;
	if (s->next)
		s->next->prev = s->prev;
	deadline_clear(&port->deadlines, &s->deadline);
}

/* Takes its place among those under way, with its timer; frees it if there is no memory. */
static int begin_send(struct mad_send *s)
{
	struct mad_port *port = s->agent->port;
	int ret = deadline_set(&port->deadlines, &s->deadline,
		port->now(port->arg) + (uint64_t)s->timeout_ms * NSEC_PER_MSEC);

	if (ret) {
		rmpp_send_free(s->rmpp);
		free(s);
		return ret;
	}
	s->next = port->sends;
	if (s->next)
		s->next->prev = s;
	port->sends = s;
	return 0;
}

static struct mad_send *new_send(struct mad_agent *a, const struct mad_addr *to,
	uint32_t timeout_ms, uint32_t retries, bool response, void *context)
{
	struct mad_send *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->agent = a;
	s->addr = *to;
	s->context = context;
	s->timeout_ms = timeout_ms;
	s->retries = retries;
	s->response = response;
	return s;
}

int mad_send(struct mad_agent *a, const struct mad_addr *to, const uint8_t mad[MAD_SIZE],
	uint32_t timeout_ms, uint32_t retries, bool response, void *context, struct mad_send **out)
{
	struct mad_send *s = new_send(a, to, timeout_ms, retries, response, context);
	int ret;

	if (!s)
		return -ENOMEM;
	memcpy(s->mad, mad, MAD_SIZE);
	ret = begin_send(s);
	if (ret)
		return ret;
	*out = s;
	(void)mad_post(a, to, mad);
	return 0;
}

int mad_send_long(struct mad_agent *a, const struct mad_addr *to, const uint8_t *msg, size_t len,
	uint32_t timeout_ms, uint32_t retries, bool response, void *context, struct mad_send **out)
{
	struct mad_send *s = new_send(a, to, timeout_ms, retries, response, context);
	int ret;

	if (!s)
		return -ENOMEM;
	ret = rmpp_send_init(s, msg, len);
	if (ret) {
		free(s);
		return ret;
	}
	ret = begin_send(s);
	if (ret)
		return ret;
	*out = s;
	rmpp_send_begin(s);
	return 0;
}

void mad_cancel(struct mad_send *s)
{
	unlink_send(s);
	rmpp_send_free(s->rmpp);
	free(s);
}

void mad_extend(struct mad_send *s, uint32_t timeout_ms)
{
	struct mad_port *port = s->agent->port;

	deadline_set(&port->deadlines, &s->deadline,
		port->now(port->arg) + (uint64_t)timeout_ms * NSEC_PER_MSEC);
}

void mad_finish(struct mad_send *s, int status, const uint8_t *response, size_t len)
{
	unlink_send(s);
	s->response_len = len;
	s->agent->done(s->agent, s, status, response);
	rmpp_send_free(s->rmpp);
	free(s);
}

static void timed_out(struct mad_port *port, struct mad_send *s)
{
	if (s->rmpp && rmpp_timed_out(s))
		return;
	if (!s->retries) {
		port->timed_out++;
		mad_finish(s, -ETIMEDOUT, NULL, 0);
		return;
	}
	s->retries--;
	mad_extend(s, s->timeout_ms);
	if (s->rmpp)
		return; /* it has all arrived; its answer takes time */
	port->resent++;
	(void)mad_post(s->agent, &s->addr, s->mad);
}

/* ---- receiving ---- */

static bool is_response(const struct mad_hdr *hdr)
{
	return hdr->method & MAD_RESPONSE || hdr->method == MAD_TRAP_REPRESS;
}

struct mad_send *mad_awaiting(
	struct mad_port *port, const struct mad_addr *from, const struct mad_hdr *hdr)
{
	for (struct mad_send *s = port->sends; s; s = s->next) {
		struct mad_hdr sent;

		wire_unpack(&mad_hdr_format, s->mad, &sent);
		if (s->response && sent.tid == hdr->tid && sent.mgmt_class == hdr->mgmt_class &&
			memcmp(s->addr.remote, from->remote, sizeof from->remote) == 0)
			return s;
	}
	return NULL;
}

static void receive_response(struct mad_port *port, const struct mad_addr *from,
	const struct mad_hdr *hdr, const uint8_t *mad)
{
	struct mad_send *s = mad_awaiting(port, from, hdr);

	if (s)
		mad_finish(s, 0, mad, MAD_SIZE);
	else
		port->drops[MAD_DROP_NO_REQUEST]++;
}

struct mad_agent *mad_registered(struct mad_port *port, const struct mad_hdr *hdr)
{
	for (struct mad_agent *a = port->agents; a; a = a->next)
		if (same_class(a, hdr->mgmt_class, hdr->class_version) && hdr->method < 128 &&
			a->methods[hdr->method / 64] >> hdr->method % 64 & 1)
			return a;
	return NULL;
}

/* Nobody is there who knows the class or method. */
static void refuse(struct mad_port *port, const struct mad_addr *from, const struct mad_hdr *hdr,
	const uint8_t *mad)
{
	struct mad_hdr answer = *hdr;
	uint8_t out[MAD_SIZE];

	port->drops[MAD_DROP_NO_AGENT]++;
	if (hdr->method != MAD_GET && hdr->method != MAD_SET)
		return;
	answer.method = MAD_GET_RESP;
	answer.status = MAD_STATUS_UNSUPPORTED;
	memcpy(out, mad, MAD_SIZE);
	wire_pack(&mad_hdr_format, &answer, out);
	port->sent++;
	(void)port->transmit(port->arg, from, out);
}

void mad_receive(struct mad_port *port, const struct mad_addr *from, const uint8_t mad[MAD_SIZE])
{
	struct mad_agent *a;
	struct mad_hdr hdr;

	port->received++;
	wire_unpack(&mad_hdr_format, mad, &hdr);
	if (hdr.base_version != MAD_BASE_VERSION) {
		port->drops[MAD_DROP_VERSION]++;
		return;
	}
	if (rmpp_receive(port, from, &hdr, mad))
		return;
	if (is_response(&hdr)) {
		receive_response(port, from, &hdr, mad);
		return;
	}
	a = mad_registered(port, &hdr);
	if (a)
		a->receive(a, from, mad);
	else
		refuse(port, from, &hdr, mad);
}

int mad_loopback(struct mad_port *port, const struct mad_addr *to, const uint8_t mad[MAD_SIZE])
{
	struct mad_loop *l = malloc(sizeof *l);

	if (!l) {
		port->drops[MAD_DROP_MEMORY]++;
		return -ENOMEM;
	}
	l->next = NULL;
	/* What we sent from our local to their remote GID comes the other way round. */
	memcpy(l->from.local, to->remote, sizeof l->from.local);
	memcpy(l->from.remote, to->local, sizeof l->from.remote);
	memcpy(l->mad, mad, MAD_SIZE);
	*port->loop_tail = l;
	port->loop_tail = &l->next;
	return 0;
}

void mad_run(struct mad_port *port, unsigned n)
{
	uint64_t now = port->now(port->arg);
	struct deadline *d;

	while (n-- && port->loop_head) {
		struct mad_loop *l = port->loop_head;

		port->loop_head = l->next;
		if (!port->loop_head)
			port->loop_tail = &port->loop_head;
		mad_receive(port, &l->from, l->mad);
		free(l);
	}
	while ((d = deadline_pop(&port->deadlines, now)))
		timed_out(port, (struct mad_send *)d);
	rmpp_run(port, now);
}

uint64_t mad_next(const struct mad_port *port)
{
	uint64_t send = deadline_next(&port->deadlines);
	uint64_t recv = deadline_next(&port->recv_deadlines);

	if (port->loop_head)
		return 1;
	return !recv || (send && send < recv) ? send : recv;
}
