// SPDX-License-Identifier: BSD-3-Clause
#include "mad/mad.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "mad/agents.h"
#include "mad/loop.h"
#include "mad/rmpp_recv.h"
#include "mad/rmpp_send.h"
#include "mad/transact.h"
#include "wire/rmpp.h"

void mad_layer_init(struct mad_layer *layer)
{
	layer->loop_tail = &layer->loop_head;
}

void mad_layer_end(struct mad_layer *layer)
{
	mad_loop_free(layer);
	mad_table_free(layer);
	deadlines_free(&layer->deadlines);
	deadlines_free(&layer->recv_deadlines);
	deadlines_free(&layer->done_deadlines);
}

void mad_port_end(struct mad_port *port)
{
	while (port->agents)
		mad_unregister(port->agents);
	mad_loop_forget(port);
}

uint64_t mad_tid(const struct mad_agent *a, uint32_t low)
{
	return (uint64_t)a->hi_tid << 32 | low;
}

void mad_own_tid(const struct mad_agent *a, uint8_t mad[MAD_SIZE])
{
	struct mad_hdr hdr;

	mad_hdr_unpack(mad, &hdr);
	if (mad_is_response(&hdr))
		return;
	hdr.tid = mad_tid(a, hdr.tid);
	mad_hdr_pack(&hdr, mad);
}

/* ---- sending ---- */

int mad_post(struct mad_agent *a, const struct mad_addr *to, const uint8_t mad[MAD_SIZE])
{
	struct mad_addr own = *to;

	own.qp = a->reg.qpn;
	a->port->sent++;
	return a->port->transmit(a->port->arg, &own, mad);
}

/* Takes its place among those under way, with its timer; frees it if there is no memory. */
static int begin_send(struct mad_send *s)
{
	struct mad_layer *layer = s->agent->port->layer;
	int ret = mad_table_add(s);

	if (!ret) {
		ret = deadline_set(&layer->deadlines, &s->deadline,
			layer->now(layer->arg) + (uint64_t)s->timeout_ms * NSEC_PER_MSEC);
		if (ret)
			mad_table_del(s);
	}
	if (ret) {
		rmpp_send_free(s->rmpp);
		mad_send_put(layer, s);
	}
	return ret;
}

/* Takes it out of all that finds it. */
static void end_send(struct mad_send *s)
{
	mad_table_del(s);
	deadline_clear(&s->agent->port->layer->deadlines, &s->deadline);
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
	s->response = response && timeout_ms;
	return s;
}

int mad_send(struct mad_agent *a, const struct mad_addr *to, const uint8_t mad[MAD_SIZE],
	uint32_t timeout_ms, uint32_t retries, bool response, void *context, struct mad_send **out)
{
	struct mad_send *s;
	int ret;

	*out = NULL;
	if (a->reg.rmpp_version && !rmpp_data_at(mad[1]))
		return -EINVAL;
	if (!timeout_ms) {
		(void)mad_post(a, to, mad);
		return 0;
	}
	s = new_send(a, to, timeout_ms, retries, response, context);
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
	struct mad_send *s;
	int ret;

	*out = NULL;
	if (!mad_registration_has_rmpp(&a->reg))
		return -EINVAL;
	s = new_send(a, to, timeout_ms, retries, response, context);
	if (!s)
		return -ENOMEM;
	s->response = response; /* until all has arrived, without a timeout */
	ret = rmpp_send_init(s, msg, len);
	if (ret) {
		mad_send_put(a->port->layer, s);
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
	struct mad_layer *layer = s->agent->port->layer;

	end_send(s);
	rmpp_send_free(s->rmpp);
	mad_send_put(layer, s);
}

void mad_extend(struct mad_send *s, uint32_t timeout_ms)
{
	struct mad_layer *layer = s->agent->port->layer;

	deadline_set(&layer->deadlines, &s->deadline,
		layer->now(layer->arg) + (uint64_t)timeout_ms * NSEC_PER_MSEC);
}

void mad_finish(struct mad_send *s, int status, const struct mad_addr *from,
	const uint8_t *response, size_t len)
{
	struct mad_layer *layer = s->agent->port->layer; /* done() may end the agent */

	end_send(s);
	s->response_from = from;
	s->response_len = len;
	s->agent->done(s->agent, s, status, response);
	rmpp_send_free(s->rmpp);
	mad_send_put(layer, s);
}

static void timed_out(struct mad_send *s)
{
	struct mad_port *port = s->agent->port;

	if (s->rmpp && rmpp_timed_out(s))
		return;
	if (!s->retries) {
		port->timed_out++;
		mad_finish(s, -ETIMEDOUT, NULL, NULL, 0);
		return;
	}
	s->retries--;
	mad_extend(s, s->timeout_ms);
	if (s->rmpp)
		return; /* it has all arrived; its answer takes time */
	port->resent++;
	(void)mad_post(s->agent, &s->addr, s->mad);
}

/* ---- in the course of time ---- */

void mad_run(struct mad_layer *layer, unsigned n)
{
	uint64_t now = layer->now(layer->arg);
	struct deadline *d;

	mad_loop_run(layer, n);
	for (unsigned i = 0; i < MAD_TIMEOUTS && (d = deadline_pop(&layer->deadlines, now)); i++)
		timed_out((struct mad_send *)d);
	rmpp_run(layer, now);
}

uint64_t mad_next(const struct mad_layer *layer)
{
	const uint64_t when[] = {
		deadline_next(&layer->deadlines),
		deadline_next(&layer->recv_deadlines),
		deadline_next(&layer->done_deadlines),
	};
	uint64_t first = 0;

	if (layer->loop_head)
		return 1;
	for (unsigned i = 0; i < sizeof when / sizeof when[0]; i++)
		if (when[i] && (!first || when[i] < first))
			first = when[i];
	return first;
}
