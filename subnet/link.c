// SPDX-License-Identifier: BSD-3-Clause
#include "subnet/link.h"

#include <errno.h>

#include "subnet/trap.h"

enum { SPEED_QDR = 4 };

/* LinkWidth bits, the widest first: 12x, 8x, 4x, 2x, 1x. */
static const uint8_t widths[] = {8, 4, 2, 16, 1};

static uint8_t widest(uint8_t mask)
{
	for (unsigned i = 0; i < sizeof widths; i++)
		if (mask & widths[i])
			return widths[i];
	return 0;
}

static uint8_t fastest(uint8_t mask)
{
	return mask ? 1u << (31 - __builtin_clz(mask)) : 0;
}

/* Set() does not count as a change of the link's state; going up and down does. */
static bool is_link_change(uint8_t from, uint8_t to)
{
	return from != to && (from == PORT_DOWN || to == PORT_DOWN);
}

void link_set_state(struct subnet *s, uint32_t port, uint8_t state)
{
	uint8_t old = tables_load(&hot_at(s, port)->state);

	if (old == state)
		return;
	tables_store(&hot_at(s, port)->state, state);
	tables_changed(&s->t);
	if (is_external(s, port) && is_link_change(old, state)) {
		s->nodes[hot_at(s, port)->node].sw.port_state_change = 1;
		trap_link_state(s, managed_by(s, port));
	}
	if (is_external(s, port))
		return;
	if (state == PORT_ACTIVE)
		tell(s, port, SUBNET_PORT_ACTIVE);
	else if (old == PORT_ACTIVE)
		tell(s, port, SUBNET_PORT_ERR);
}

static bool can_train(const struct port *a, const struct port *b)
{
	bool ready = (a->phys == PHYS_POLLING || a->phys == PHYS_SLEEP) &&
		     (b->phys == PHYS_POLLING || b->phys == PHYS_SLEEP);

	/* A sleeping port wakes when the other one polls. */
	return ready && (a->phys == PHYS_POLLING || b->phys == PHYS_POLLING);
}

static bool negotiate(struct port *a, struct port *b)
{
	uint8_t width = widest(a->width_enabled & b->width_enabled);
	uint8_t speed = fastest(a->speed_enabled & b->speed_enabled);

	if (!width || !speed)
		return false;
	a->width_active = b->width_active = width;
	a->speed_active = b->speed_active = speed;
	a->ext_speed_active = b->ext_speed_active =
		fastest(a->ext_speed_enabled & b->ext_speed_enabled);
	a->fdr10_active = b->fdr10_active =
		!a->ext_speed_active && speed == SPEED_QDR && a->fdr10_enabled && b->fdr10_enabled;
	return true;
}

static void raise_one(struct subnet *s, uint32_t port, uint32_t peer)
{
	struct tables_port *h = hot_at(s, port);

	port_at(s, port)->phys = PHYS_LINK_UP;
	tables_store(&h->mtu, MTU_4096);
	tables_store(&h->vls, VLS);
	tables_store(&h->peer, peer);
}

void link_train(struct subnet *s, uint32_t port)
{
	struct port *a = port_at(s, port), *b = port_at(s, a->cable);

	if (!a->plugged || !can_train(a, b) || !negotiate(a, b))
		return;
	raise_one(s, port, a->cable);
	raise_one(s, a->cable, port);
	link_set_state(s, port, PORT_INIT);
	link_set_state(s, a->cable, PORT_INIT);
}

void link_drop(struct subnet *s, uint32_t port, uint8_t phys)
{
	struct port *a = port_at(s, port);
	uint32_t peer = tables_load(&hot_at(s, port)->peer);

	a->phys = phys;
	if (!peer)
		return;
	port_at(s, peer)->phys = port_at(s, peer)->down_default;
	tables_store(&hot_at(s, port)->peer, 0);
	tables_store(&hot_at(s, peer)->peer, 0);
	count(s, port, COUNT_LINK_DOWNED, 1);
	count(s, peer, COUNT_LINK_DOWNED, 1);
	link_set_state(s, port, PORT_DOWN);
	link_set_state(s, peer, PORT_DOWN);
}

/* A port that may have a cable; 0. */
static uint32_t cabled(const struct subnet *s, uint32_t node, uint8_t port)
{
	return port ? port_of(s, node, port) : 0;
}

int subnet_unlink(struct subnet *s, uint32_t node, uint8_t port)
{
	uint32_t a = cabled(s, node, port);
	struct port *p = port_at(s, a);

	if (!a)
		return -EINVAL;
	if (!p->plugged)
		return -ENOTCONN;
	p->plugged = port_at(s, p->cable)->plugged = false;
	if (p->phys == PHYS_LINK_UP)
		link_drop(s, a, p->down_default);
	return 0;
}

static void plug(struct subnet *s, uint32_t a, uint32_t b)
{
	port_at(s, a)->cable = b;
	port_at(s, b)->cable = a;
	port_at(s, a)->plugged = port_at(s, b)->plugged = true;
	link_train(s, a);
}

int subnet_relink(struct subnet *s, uint32_t node, uint8_t port)
{
	uint32_t a = cabled(s, node, port), b;

	if (!a)
		return -EINVAL;
	b = port_at(s, a)->cable;
	if (!b)
		return -ENOTCONN;
	if (port_at(s, a)->plugged || port_at(s, b)->plugged)
		return -EBUSY;
	if (port_at(s, b)->cable != a)
		return -ENOTCONN;
	plug(s, a, b);
	return 0;
}

int subnet_link(struct subnet *s, uint32_t a, uint8_t a_port, uint32_t b, uint8_t b_port)
{
	uint32_t x = cabled(s, a, a_port), y = cabled(s, b, b_port);

	if (!x || !y || x == y)
		return -EINVAL;
	if (port_at(s, x)->plugged || port_at(s, y)->plugged)
		return -EBUSY;
	plug(s, x, y);
	return 0;
}

int subnet_cable(
	const struct subnet *s, uint32_t node, uint8_t port, uint32_t *peer, uint8_t *peer_port)
{
	uint32_t a = cabled(s, node, port);
	const struct port *p = port_at(s, a);

	if (!a)
		return -EINVAL;
	if (!p->plugged)
		return -ENOTCONN;
	*peer = hot_at(s, p->cable)->node;
	*peer_port = port_at(s, p->cable)->num;
	return 0;
}
