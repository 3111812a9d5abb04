// SPDX-License-Identifier: BSD-3-Clause
#include "mad/mad.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "mad/agents.h"
#include "mad/rmpp.h"
#include "mad/transact.h"

struct mad_loop {
	struct mad_loop *next;
	struct mad_addr from;
	uint8_t mad[MAD_SIZE];
};

void mad_port_init(struct mad_port *port)
{
	port->loop_tail = &port->loop_head;
}

static void free_loops(struct mad_loop *l)
{
	for (struct mad_loop *next; l; l = next) {
		next = l->next;
		free(l);
	}
}

void mad_port_end(struct mad_port *port)
{
	while (port->agents)
		mad_unregister(port->agents);
	free_loops(port->loop_head);
	free_loops(port->spare_loops);
	port->loop_head = port->spare_loops = NULL;
	mad_table_free(port);
	mad_agents_free(port);
	deadlines_free(&port->deadlines);
	deadlines_free(&port->recv_deadlines);
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

/* Takes its place among those under way, with its timer; frees it if there is no memory. */
static int begin_send(struct mad_send *s)
{
	struct mad_port *port = s->agent->port;
	int ret = mad_table_add(s);

	if (!ret) {
		ret = deadline_set(&port->deadlines, &s->deadline,
			port->now(port->arg) + (uint64_t)s->timeout_ms * NSEC_PER_MSEC);
		if (ret)
			mad_table_del(s);
	}
	if (ret) {
		rmpp_send_free(s->rmpp);
		mad_send_put(port, s);
	}
	return ret;
}

/* Takes it out of all that finds it. */
static void end_send(struct mad_send *s)
{
	mad_table_del(s);
	deadline_clear(&s->agent->port->deadlines, &s->deadline);
}

static struct mad_send *new_send(struct mad_agent *a, const struct mad_addr *to,
	uint32_t timeout_ms, uint32_t retries, bool response, void *context)
{
	struct mad_send *s = mad_send_get(a);

	if (!s)
		return NULL;
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
		mad_send_put(a->port, s);
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
	struct mad_port *port = s->agent->port;

	end_send(s);
	rmpp_send_free(s->rmpp);
	mad_send_put(port, s);
}

void mad_extend(struct mad_send *s, uint32_t timeout_ms)
{
	struct mad_port *port = s->agent->port;

	deadline_set(&port->deadlines, &s->deadline,
		port->now(port->arg) + (uint64_t)timeout_ms * NSEC_PER_MSEC);
}

void mad_finish(struct mad_send *s, int status, const uint8_t *response, size_t len)
{
	struct mad_port *port = s->agent->port; /* done() may end the agent */

	end_send(s);
	s->response_len = len;
	s->agent->done(s->agent, s, status, response);
	rmpp_send_free(s->rmpp);
	mad_send_put(port, s);
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

static void receive_response(struct mad_port *port, const struct mad_addr *from,
	const struct mad_hdr *hdr, const uint8_t *mad)
{
	struct mad_send *s = mad_awaiting(port, from, hdr);

	if (s)
		mad_finish(s, 0, mad, MAD_SIZE);
	else
		port->drops[MAD_DROP_NO_REQUEST]++;
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
	struct mad_loop *l = port->spare_loops;

	if (l)
		port->spare_loops = l->next;
	else
		l = malloc(sizeof *l);
	if (!l) {
		port->drops[MAD_DROP_MEMORY]++;
		return -ENOMEM;
	}
	l->next = NULL;
	/* What we sent from our local to their remote GID comes the other way round. */
	l->from = *to;
	memcpy(l->from.grh.local, to->grh.remote, MAD_GID);
	memcpy(l->from.grh.remote, to->grh.local, MAD_GID);
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
		l->next = port->spare_loops;
		port->spare_loops = l;
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
