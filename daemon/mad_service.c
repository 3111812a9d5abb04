// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/mad_service.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "fabric/page.h"
#include "mad/dispatch.h"
#include "mad/loop.h"

bool mad_service_is_local(const struct mad_service *m, const uint8_t gid[MAD_GID])
{
	const struct fabric_port *port = &m->server->node->page->port[0];

	for (uint32_t i = 0; i < port->n_gids && i < FABRIC_MAX_GIDS; i++)
		if (port->gid[i].type && memcmp(port->gid[i].raw, gid, MAD_GID) == 0)
			return true;
	return false;
}

static int transmit(void *arg, const struct mad_addr *to, const uint8_t mad[MAD_SIZE])
{
	struct mad_service *m = arg;

	if (!to->has_grh)
		return -EHOSTUNREACH;
	if (!mad_service_is_local(m, to->grh.remote))
		return qp1_send(&m->qp1, to, mad);
	return mad_loopback(&m->port, to, mad);
}

uint64_t mad_service_now(void *arg)
{
	(void)arg;
	return clock_ns();
}

json_t *mad_service_drops(const struct mad_service *m)
{
	json_t *o = json_object();

	for (int i = 0; i < MAD_DROP_COUNT; i++)
		json_object_set_new(o, mad_drop_name(i), json_integer(m->port.drops[i]));
	return o;
}

/* Who guesses a transaction id of ours answers in the place of whom it was sent to. */
static uint32_t some_tid(void)
{
	uint32_t word;

	if (getrandom(&word, sizeof word, GRND_NONBLOCK) == sizeof word)
		return word;
	return clock_ns();
}

void mad_service_start(struct mad_service *m, struct server *s)
{
	m->server = s;
	m->layer.last_hi_tid = some_tid();
	m->layer.now = mad_service_now;
	mad_layer_init(&m->layer);
	m->port = (struct mad_port){
		.layer = &m->layer, .transmit = transmit, .arg = m, .ethernet = true};
	qp1_start(&m->qp1, s, &m->port);
}
