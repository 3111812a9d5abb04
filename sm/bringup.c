// SPDX-License-Identifier: BSD-3-Clause
#include "sm/bringup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sm/attr.h"
#include "sm/port.h"

int bringup_make(struct bringup *b, struct subnet *s, struct lids *lids)
{
	*b = (struct bringup){.s = s, .t = subnet_tables(s), .lids = lids, .work = BRINGUP_DONE};
	b->holder = calloc(TABLES_LIDS, sizeof *b->holder);
	b->lmc = calloc(b->t->head->n_ports, sizeof *b->lmc);
	if (route_make(&b->route, s) || !b->holder || !b->lmc)
		return -ENOMEM;
	for (uint32_t port = 1; port < b->t->head->n_ports; port++)
		b->lmc[port] = tables_load(&b->t->ports[port].lmc);
	return 0;
}

void bringup_free(struct bringup *b)
{
	route_free(&b->route);
	free(b->holder);
	free(b->lmc);
	*b = (struct bringup){0};
}

/* A port that has a LID of its own, and a link or no need of one. */
static bool needs_lid(const struct bringup *b, uint32_t port)
{
	return port_is_managed(b->t, port) &&
	       (!port_number(b->t, port) || tables_load(&b->t->ports[port].peer));
}

/* Port 0 of the first switch, else the first adapter's port that has a link. */
static uint32_t find_sm_port(const struct bringup *b)
{
	if (b->route.g.n)
		return b->t->nodes[b->route.g.node[0]].port0;
	for (uint32_t port = 1; port < b->t->head->n_ports; port++)
		if (needs_lid(b, port))
			return port;
	return 0;
}

static uint64_t epoch(const struct bringup *b)
{
	return tables_load(&b->t->head->epoch);
}

static void begin_work(struct bringup *b, enum bringup_work work)
{
	b->work = work;
	b->at = work <= BRINGUP_PORTS || work == BRINGUP_ACTIVATE ? 1 : 0;
}

static void begin_round(struct bringup *b, enum bringup_work work)
{
	b->epoch = epoch(b);
	b->sm_port = find_sm_port(b);
	begin_work(b, work);
}

void bringup_begin(struct bringup *b, bool learn)
{
	memset(b->holder, 0, TABLES_LIDS * sizeof *b->holder);
	b->top = 0;
	b->all = b->reroute = true;
	begin_round(b, learn ? BRINGUP_LEARN : BRINGUP_KEEP);
}

bool bringup_due(const struct bringup *b)
{
	return b->work != BRINGUP_DONE || b->epoch != epoch(b);
}

/* What a unit has done. */
enum unit { UNIT_NOTHING, UNIT_SOMETHING, UNIT_END /* the work was over before */ };

/* ---- LIDs ---- */

static uint16_t live_lid(const struct bringup *b, uint32_t port)
{
	uint16_t lid = tables_load(&b->t->ports[port].lid);

	return lid < TABLES_LIDS ? lid : 0;
}

static unsigned n_lids(const struct bringup *b, uint32_t port)
{
	return 1u << b->lmc[port];
}

/* Whether nobody holds one of the LIDs from that one on that the port would have. */
static bool is_free(const struct bringup *b, uint32_t port, uint16_t lid)
{
	for (unsigned i = 0; i < n_lids(b, port); i++)
		if (lid + i >= TABLES_LIDS || b->holder[lid + i])
			return false;
	return lid;
}

static void hold(struct bringup *b, uint32_t port, uint16_t lid)
{
	if (!is_free(b, port, lid))
		return;
	for (unsigned i = 0; i < n_lids(b, port); i++)
		b->holder[lid + i] = port;
	if (lid + n_lids(b, port) - 1 > b->top)
		b->top = lid + n_lids(b, port) - 1;
}

/* The LID that it has is the first of those that it holds. */
static bool has_its_lid(const struct bringup *b, uint32_t port)
{
	uint16_t lid = live_lid(b, port);

	return lid && b->holder[lid] == port && !(lid & (n_lids(b, port) - 1));
}

uint16_t bringup_lid(const struct bringup *b, uint32_t port)
{
	uint16_t lid;

	if (!port || has_its_lid(b, port))
		return port ? live_lid(b, port) : 0;
	lid = lids_of(b->lids, port_guid(b->s, b->t, port));
	return b->holder[lid] == port ? lid : 0;
}

/* Whether LIDs that go with its LMC are known for a port. */
static bool is_known(const struct bringup *b, uint32_t port, uint64_t guid)
{
	uint16_t lid = lids_of(b->lids, guid);

	return lid && lids_lmc(b->lids, lid) == b->lmc[port];
}

/* Another subnet manager has given it; of two ports with one LID the first keeps it. */
static void learn(struct bringup *b, uint32_t port, uint64_t guid)
{
	uint16_t lid = live_lid(b, port);

	if (is_free(b, port, lid) && !lids_take(b->lids, guid, lid, b->lmc[port]))
		hold(b, port, lid);
}

static void keep(struct bringup *b, uint32_t port, uint64_t guid)
{
	if (is_known(b, port, guid))
		hold(b, port, lids_of(b->lids, guid));
}

static void ask(struct bringup *b, uint32_t port, uint64_t guid)
{
	uint16_t lid = live_lid(b, port);

	if (!is_known(b, port, guid) && !lids_claim(b->lids, guid, lid, b->lmc[port]))
		hold(b, port, lid);
}

static void give(struct bringup *b, uint32_t port, uint64_t guid)
{
	if (!is_known(b, port, guid))
		hold(b, port, lids_give(b->lids, guid, b->lmc[port]));
}

/* One port. */
static enum unit unit_lid(struct bringup *b)
{
	static void (*const ways[])(struct bringup *, uint32_t, uint64_t) = {
		[BRINGUP_LEARN] = learn,
		[BRINGUP_KEEP] = keep,
		[BRINGUP_ASKED] = ask,
		[BRINGUP_GIVE] = give,
	};
	uint32_t port = b->at++;

	if (port >= b->t->head->n_ports)
		return UNIT_END;
	if (!needs_lid(b, port) || has_its_lid(b, port))
		return UNIT_NOTHING;
	ways[b->work](b, port, port_guid(b->s, b->t, port));
	return UNIT_SOMETHING;
}

/* ---- ports ---- */

/* Nothing is written to a port that has no link, or should have a LID and got none. */
static bool is_ours(const struct bringup *b, uint32_t port)
{
	if (port_is_managed(b->t, port) && !bringup_lid(b, port))
		return false;
	return !port_number(b->t, port) || tables_load(&b->t->ports[port].peer);
}

static uint8_t live_lmc(const struct bringup *b, uint32_t port)
{
	return tables_load(&b->t->ports[port].lmc);
}

/* An active port with its LIDs was done in a round before. */
static bool is_settled(const struct bringup *b, uint32_t port)
{
	if (b->all || tables_load(&b->t->ports[port].state) != PORT_ACTIVE)
		return false;
	return !port_is_managed(b->t, port) ||
	       (live_lid(b, port) == bringup_lid(b, port) && live_lmc(b, port) == b->lmc[port]);
}

static enum unit unit_port(struct bringup *b)
{
	uint32_t port = b->at++;
	uint16_t lid;

	if (port >= b->t->head->n_ports)
		return UNIT_END;
	if (is_settled(b, port) || !is_ours(b, port))
		return UNIT_NOTHING;
	lid = port_is_managed(b->t, port) ? bringup_lid(b, port) : 0;
	b->reroute |= lid && live_lid(b, port) != lid;
	b->acts += port_configure(b->s, b->t, port, lid, b->lmc[port], bringup_lid(b, b->sm_port));
	return UNIT_SOMETHING;
}

static enum unit unit_activate(struct bringup *b)
{
	uint32_t port = b->at++;

	if (port >= b->t->head->n_ports)
		return UNIT_END;
	if (is_settled(b, port) || !is_ours(b, port))
		return UNIT_NOTHING;
	b->acts += port_activate(b->s, b->t, port, b->all);
	return UNIT_SOMETHING;
}

/* ---- switches ---- */

static enum unit unit_switch(struct bringup *b)
{
	struct switch_info i = {0};
	uint8_t data[SMP_DATA_SIZE];
	uint32_t node;

	if (b->at >= b->route.g.n)
		return UNIT_END;
	node = b->route.g.node[b->at++];
	if (!attr_get(b->s, node, 0, SMP_SWITCH_INFO, 0, data))
		return UNIT_NOTHING;
	wire_unpack(&switch_info_format, data, &i);
	if (i.lft_top == b->top && !i.port_state_change)
		return UNIT_NOTHING;
	/* PortStateChange stands as 1, and writing that clears it. */
	i.lft_top = b->top;
	wire_pack(&switch_info_format, &i, data);
	b->acts += attr_set(b->s, node, 0, SMP_SWITCH_INFO, 0, data);
	return UNIT_SOMETHING;
}

/* ---- routes ---- */

static enum unit unit_compare(struct bringup *b)
{
	if (!b->reroute && b->at < b->route.g.n) {
		b->reroute = !route_compare(&b->route, b->at++);
		return UNIT_NOTHING;
	}
	if (b->reroute)
		route_all(&b->route, b->top);
	else
		route_changed(&b->route);
	return UNIT_END;
}

static enum unit unit_route(struct bringup *b)
{
	b->acts++;
	return route_unit(&b->route) ? UNIT_SOMETHING : UNIT_END;
}

void bringup_unit(struct bringup *b)
{
	static enum unit (*const units[])(struct bringup *) = {
		[BRINGUP_LEARN] = unit_lid,
		[BRINGUP_KEEP] = unit_lid,
		[BRINGUP_ASKED] = unit_lid,
		[BRINGUP_GIVE] = unit_lid,
		[BRINGUP_PORTS] = unit_port,
		[BRINGUP_SWITCHES] = unit_switch,
		[BRINGUP_COMPARE] = unit_compare,
		[BRINGUP_ROUTES] = unit_route,
		[BRINGUP_ACTIVATE] = unit_activate,
	};
	enum { AT_ONCE = 256 }; /* that do nothing, and take about 10 ns each */
	enum unit done = UNIT_NOTHING;

	if (b->work == BRINGUP_DONE && bringup_due(b))
		begin_round(b, BRINGUP_KEEP);
	if (b->work == BRINGUP_DONE)
		return;
	for (unsigned n = 0; done == UNIT_NOTHING && n < AT_ONCE; n++)
		done = units[b->work](b);
	if (done != UNIT_END)
		return;
	begin_work(b, b->work + 1);
	if (b->work == BRINGUP_DONE)
		b->all = b->reroute = false;
}
