// SPDX-License-Identifier: BSD-3-Clause
#include "mad/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mad/dispatch.h"

enum { SPARE_MAX = 4096 };

struct mad_loop {
	struct mad_loop *next;
	struct mad_port *port;
	struct mad_addr from;
	uint8_t mad[MAD_SIZE];
};

/* It is in the queue no more. */
static void put(struct mad_layer *layer, struct mad_loop *l)
{
	layer->n_loops--;
	spare_put(&layer->spare_loops, l, SPARE_MAX);
}

/* What we sent from our local to their remote address comes the other way round. */
static struct mad_addr turned(const struct mad_port *port, const struct mad_addr *to)
{
	struct mad_addr from = *to;

	from.qp = to->qpn;
	from.qpn = to->qp;
	if (port->lid && to->lid != MAD_LID_PERMISSIVE) {
		from.lid = port->lid | to->path_bits;
		from.path_bits = to->lid & ((1u << port->lmc) - 1);
	}
	memcpy(from.grh.local, to->grh.remote, MAD_GID);
	memcpy(from.grh.remote, to->grh.local, MAD_GID);
	if (port->ethernet)
		mad_addr_by_ethernet(&from);
	return from;
}

int mad_queue(struct mad_port *port, const struct mad_addr *from, const uint8_t mad[MAD_SIZE])
{
	struct mad_layer *layer = port->layer;
	struct mad_loop *l;

	if (layer->n_loops >= MAD_LOOPS_MAX) {
		port->drops[MAD_DROP_QUEUE]++;
		return -ENOBUFS;
	}
	l = spare_get(&layer->spare_loops, sizeof(struct mad_loop));
	if (!l) {
		port->drops[MAD_DROP_MEMORY]++;
		return -ENOMEM;
	}
	l->next = NULL;
	l->port = port;
	l->from = *from;
	memcpy(l->mad, mad, MAD_SIZE);
	*layer->loop_tail = l;
	layer->loop_tail = &l->next;
	layer->n_loops++;
	return 0;
}

int mad_loopback(struct mad_port *port, const struct mad_addr *to, const uint8_t mad[MAD_SIZE])
{
	const struct mad_addr from = turned(port, to);

	if (to->qpn <= 1)
		return mad_queue(port, &from, mad);
	port->drops[MAD_DROP_QP]++;
	return 0;
}

void mad_loop_run(struct mad_layer *layer, unsigned n)
{
	while (n-- && layer->loop_head) {
		struct mad_loop *l = layer->loop_head;

		layer->loop_head = l->next;
		if (!layer->loop_head)
			layer->loop_tail = &layer->loop_head;
		mad_receive(l->port, &l->from, l->mad);
		put(layer, l);
	}
}

void mad_loop_forget(struct mad_port *port)
{
	struct mad_layer *layer = port->layer;
	struct mad_loop **link = &layer->loop_head, *l;

	while ((l = *link)) {
		if (l->port != port) {
			link = &l->next;
			continue;
		}
		*link = l->next;
		put(layer, l);
	}
	layer->loop_tail = link;
}

static void free_all(struct mad_loop *l)
{
	for (struct mad_loop *next; l; l = next) {
		next = l->next;
		free(l);
	}
}

void mad_loop_free(struct mad_layer *layer)
{
	free_all(layer->loop_head);
	spare_free(&layer->spare_loops);
	layer->loop_head = NULL;
	layer->loop_tail = &layer->loop_head;
	layer->n_loops = 0;
}
