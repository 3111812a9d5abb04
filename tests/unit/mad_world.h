/* SPDX-License-Identifier: BSD-3-Clause */
/* One port with its layer, on a clock of its own; what it sends is counted and kept. */
#pragma once

#include <string.h>

#include "base/clock.h"
#include "mad/agents.h"
#include "mad/dispatch.h"
#include "mad/loop.h"
#include "mad/transact.h"

static struct {
	struct mad_layer layer;
	struct mad_port port;
	uint64_t now;
	int transmitted, received, done, status;
	bool loop, answered;
	uint8_t last[MAD_SIZE]; /* that went out */
	struct mad_addr last_to;
	uint8_t came[MAD_SIZE];    /* to an agent */
	struct mad_addr came_from; /* the same, or the response's */
	struct mad_agent *to;      /* who got it */
} w;

/* Of two addresses that are GIDs, and of two that are LIDs. */
static const struct mad_addr peer = {
	.qp = 1, .qpn = 1, .has_grh = true, .grh = {.local = {1}, .remote = {2}}};
static const struct mad_addr neighbour = {.qp = 1, .qpn = 1, .lid = 5};

static uint64_t world_now(void *arg)
{
	(void)arg;
	return w.now;
}

static int world_transmit(void *arg, const struct mad_addr *to, const uint8_t mad[MAD_SIZE])
{
	(void)arg;
	w.transmitted++;
	w.last_to = *to;
	memcpy(w.last, mad, MAD_SIZE);
	return w.loop ? mad_loopback(&w.port, to, mad) : 0;
}

static void world_receive(
	struct mad_agent *a, const struct mad_addr *from, const uint8_t mad[MAD_SIZE])
{
	w.received++;
	w.to = a;
	w.came_from = *from;
	memcpy(w.came, mad, MAD_SIZE);
}

static void world_done(struct mad_agent *a, struct mad_send *s, int status, const uint8_t *response)
{
	assert_ptr_equal(s->context, &w);
	w.done++;
	w.to = a;
	w.status = status;
	w.answered = response != NULL;
	if (response)
		w.came_from = *s->response_from;
}

static void begin(void)
{
	memset(&w, 0, sizeof w);
	w.now = NSEC_PER_SEC;
	w.layer.now = world_now;
	mad_layer_init(&w.layer);
	w.port = (struct mad_port){.layer = &w.layer, .transmit = world_transmit, .has_qp0 = true};
}

static void end(void)
{
	mad_port_end(&w.port);
	for (int i = 0; i < MAD_AGENT_BUCKETS; i++)
		assert_null(w.layer.by_tid[i]);
	for (int i = 0; i < MAD_REGISTERED_CLASSES; i++)
		assert_null(w.port.classes[i]);
	assert_int_equal(w.layer.n_sends, 0);
	mad_layer_end(&w.layer);
}

/* Of the class's own QP. */
static struct mad_agent agent_of(uint8_t mgmt_class, uint8_t version, unsigned method)
{
	struct mad_agent a = {
		.reg = {.qpn = mad_class_qp(mgmt_class),
			.mgmt_class = mgmt_class,
			.class_version = version},
		.receive = world_receive,
		.done = world_done,
	};

	a.reg.methods[method / 64] = 1ull << method % 64;
	return a;
}

static void make(uint8_t *mad, uint8_t mgmt_class, uint8_t version, uint8_t method, uint64_t tid)
{
	const struct mad_hdr h = {.base_version = MAD_BASE_VERSION,
		.mgmt_class = mgmt_class,
		.class_version = version,
		.method = method,
		.tid = tid};

	memset(mad, 0, MAD_SIZE);
	wire_pack(&mad_hdr_format, &h, mad);
}
