// SPDX-License-Identifier: BSD-3-Clause
#include "subnet/carry.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "fabric/walk.h"
#include "subnet/link.h"
#include "subnet/pma.h"
#include "subnet/sma.h"
#include "subnet/smi.h"
#include "subnet/trap.h"

_Static_assert((int)TABLES_ARMED == PORT_ARMED && (int)TABLES_ACTIVE == PORT_ACTIVE,
	"states of ports are those of PortInfo");
_Static_assert((int)CARRY_HOPS == WALK_HOPS, "a MAD goes as far as data");

/* What a step says besides a subnet_drop. */
enum { ON_ITS_WAY = -1, ARRIVED = -2 };

enum { METHOD = 3, ATTR = 16 };

static bool is_directed(const struct flight *f)
{
	return f->mad[1] == MAD_CLASS_SUBN_DR;
}

/* A cheap sequence; nothing depends on its quality. */
static bool lost(struct subnet *s, uint32_t port, const struct flight *f)
{
	const struct port *p = port_at(s, port);

	if (!s->losing || !p->error_percent)
		return false;
	if (p->error_attr && p->error_attr != (f->mad[ATTR] << 8 | f->mad[ATTR + 1]))
		return false;
	s->random = hash_mix(s->random);
	if (s->random % 100 >= p->error_percent)
		return false;
	count(s, port, COUNT_RCV_ERRORS, 1);
	count_detail(s, port, DETAIL_LOCAL_PHYSICAL);
	return true;
}

static uint32_t words(const struct flight *f)
{
	return WORDS_MAD + (f->has_grh ? WORDS_GRH : 0);
}

static void count_packet(struct subnet *s, uint32_t port, const struct flight *f, unsigned way)
{
	count(s, port, way == DATA_XMIT ? COUNT_XMIT_DATA : COUNT_RCV_DATA, words(f));
	count(s, port, way == DATA_XMIT ? COUNT_XMIT_PKTS : COUNT_RCV_PKTS, 1);
	count(s, port, way == DATA_XMIT ? COUNT_UNICAST_XMIT : COUNT_UNICAST_RCV, 1);
	if (f->gmp) {
		uint32_t *n = &s->sl_data[port].words[way][f->sl];

		*n = *n + words(f) < *n ? UINT32_MAX : *n + words(f);
	}
}

/* P_Key enforcement of a switch's port. */
static bool pkey_passes(struct subnet *s, uint32_t port, const struct flight *f, unsigned way)
{
	bool in = way == DATA_RCV;
	uint8_t enforce = tables_load(&hot_at(s, port)->enforce);

	if (!f->gmp || !(enforce & (in ? ENFORCE_IN : ENFORCE_OUT)) ||
		tables_lets_pkey(&s->t, port, f->pkey))
		return true;
	count(s, port, in ? COUNT_RCV_CONSTRAINT : COUNT_XMIT_CONSTRAINT, 1);
	trap_switch_bad_pkey(s, port, f);
	return false;
}

static bool has_vl(struct subnet *s, uint32_t out, const struct flight *f)
{
	const struct tables_node *n = &s->t.nodes[f->node];
	uint64_t vls = tables_sl2vl(&s->t, f->node, f->at - n->port0, out - n->port0);

	return !f->gmp || tables_vl(vls, f->sl) < tables_load(&hot_at(s, out)->vls);
}

static int discard(struct subnet *s, uint32_t port, int why)
{
	count(s, port, COUNT_XMIT_DISCARDS, 1);
	return why;
}

/* May it leave by that port? */
static int check_out(struct subnet *s, uint32_t out, const struct flight *f)
{
	const struct tables_port *h = hot_at(s, out);

	if (!tables_load(&h->peer) || (f->gmp && tables_load(&h->state) != PORT_ACTIVE)) {
		count_detail(s, out, DETAIL_INACTIVE);
		return discard(s, out, SUBNET_DROP_LINK);
	}
	if (!pkey_passes(s, out, f, DATA_XMIT))
		return SUBNET_DROP_PKEY;
	if (!has_vl(s, out, f))
		return discard(s, out, SUBNET_DROP_VL);
	return ON_ITS_WAY;
}

/* Does the port take it?  The first packet of data makes an armed port active. */
static int check_in(struct subnet *s, uint32_t in, const struct flight *f)
{
	uint8_t state = tables_load(&hot_at(s, in)->state);

	if (lost(s, in, f))
		return SUBNET_DROP_INJECTED;
	if (f->gmp && state != PORT_ARMED && state != PORT_ACTIVE)
		return SUBNET_DROP_LINK;
	count_packet(s, in, f, DATA_RCV);
	if (f->gmp && state == PORT_ARMED)
		link_set_state(s, in, PORT_ACTIVE);
	return pkey_passes(s, in, f, DATA_RCV) ? ON_ITS_WAY : SUBNET_DROP_PKEY;
}

/* Over one link. */
static int cross(struct subnet *s, uint32_t out, struct flight *f)
{
	int why = check_out(s, out, f);

	if (why != ON_ITS_WAY)
		return why;
	if (f->hops++ >= CARRY_HOPS) {
		count_detail(s, out, DETAIL_LOOPING);
		return discard(s, out, SUBNET_DROP_LOOP);
	}
	if (lost(s, out, f))
		return SUBNET_DROP_INJECTED;
	count_packet(s, out, f, DATA_XMIT);
	f->at = tables_load(&hot_at(s, out)->peer);
	f->node = hot_at(s, f->at)->node;
	f->own = false;
	return check_in(s, f->at, f);
}

static int relay_error(struct subnet *s, const struct flight *f, enum detail which, int why)
{
	if (is_external(s, f->at)) {
		count(s, f->at, COUNT_RCV_SWITCH_RELAY, 1);
		count_detail(s, f->at, which);
	}
	return why;
}

/* By the forwarding table of a switch. */
static int forward(struct subnet *s, struct flight *f)
{
	const struct tables_node *n = &s->t.nodes[f->node];
	uint8_t out = tables_route(&s->t, n, f->dlid);

	if (!out || out > n->n_ports)
		return relay_error(s, f, DETAIL_DLID_MAPPING, SUBNET_DROP_LID);
	if (n->port0 + out == f->at)
		return relay_error(s, f, DETAIL_LOOPING, SUBNET_DROP_LOOP);
	return cross(s, n->port0 + out, f);
}

static bool is_mine(const struct subnet *s, const struct flight *f)
{
	if (f->dlid == LID_PERMISSIVE)
		return !f->own;
	return tables_owns_lid(hot_at(s, managed_by(s, f->at)), f->dlid);
}

static int step_directed(struct subnet *s, struct flight *f)
{
	const struct tables_node *n = &s->t.nodes[f->node];
	bool sw = n->kind == TABLES_SWITCH;
	struct smi_step to = smi_step(f->mad, sw, f->at - n->port0, f->own);

	switch (to.where) {
	case SMI_HERE:
		return ARRIVED;
	case SMI_PORT:
		if (!to.port || to.port > n->n_ports)
			return SUBNET_DROP_ROUTE;
		f->slid = f->dlid = LID_PERMISSIVE;
		return cross(s, n->port0 + to.port, f);
	case SMI_LID:
		/* As if it began here: it may have to leave by the port that it came by. */
		f->at = n->port0;
		f->slid = tables_load(&hot_at(s, n->port0)->lid);
		f->dlid = to.lid;
		return tables_owns_lid(hot_at(s, n->port0), to.lid) ? ARRIVED : forward(s, f);
	default:
		return SUBNET_DROP_ROUTE;
	}
}

static int step(struct subnet *s, struct flight *f)
{
	bool directed = is_directed(f);

	if (is_mine(s, f) || (directed && f->own && smi_begins_directed(f->mad)))
		return directed ? step_directed(s, f) : ARRIVED;
	if (is_switch(s, f->node))
		return forward(s, f);
	return f->own ? cross(s, f->at, f) : SUBNET_DROP_LID;
}

/* The last check of a datagram; *index: where its key stands, which f has from then on. */
static int check_pkey(struct subnet *s, struct flight *f, uint16_t *index)
{
	uint32_t port = managed_by(s, f->at);
	int i = tables_find_pkey(&s->t, port, f->pkey);

	*index = 0;
	if (!f->gmp)
		return ARRIVED;
	if (i < 0) {
		struct port *p = port_at(s, port);

		p->pkey_violations += p->pkey_violations < UINT16_MAX;
		trap_bad_pkey(s, port, f);
		return SUBNET_DROP_PKEY;
	}
	*index = i;
	/* An answer has it, too: who asked as a limited member takes it from a full one. */
	f->pkey = tables_pkey(&s->t, port, i);
	return ARRIVED;
}

static struct mad_addr address(const struct subnet *s, const struct flight *f, uint16_t pkey_index)
{
	const struct tables_port *h = hot_at(s, managed_by(s, f->at));
	struct mad_addr a = {.lid = f->slid,
		.sl = f->sl,
		.port = port_at(s, managed_by(s, f->at))->num,
		.has_grh = f->has_grh,
		.pkey_index = pkey_index,
		.qpn = f->src_qpn,
		.qkey = f->qkey};

	if (f->dlid != LID_PERMISSIVE)
		a.path_bits = f->dlid & ((1u << tables_load(&h->lmc)) - 1);
	if (f->has_grh) {
		a.grh = f->grh;
		memcpy(a.grh.local, f->grh.remote, MAD_GID);
		memcpy(a.grh.remote, f->grh.local, MAD_GID);
	}
	return a;
}

/* To the programs on that port. */
static bool deliver(struct subnet *s, struct flight *f, uint16_t pkey_index)
{
	struct mad_addr from = address(s, f, pkey_index);

	return s->ops.deliver(s->ops.arg, f->node, from.port, f->gmp, &from, f->mad);
}

/* A Get or Set that nobody knows. */
static bool refuse(struct flight *f)
{
	if (f->mad[METHOD] != MAD_GET && f->mad[METHOD] != MAD_SET)
		return false;
	f->mad[METHOD] = MAD_GET_RESP;
	f->mad[4] = is_directed(f) ? 0x80 : 0;
	f->mad[5] = MAD_STATUS_UNSUPPORTED;
	return true;
}

/* Turns a request that was answered in place into the response on its way back. */
static void turn(struct subnet *s, struct flight *f)
{
	uint16_t from = f->slid;
	uint32_t qpn = f->src_qpn;

	f->slid = f->dlid;
	f->dlid = from;
	f->src_qpn = f->qpn;
	f->qpn = qpn;
	f->hops = 0;
	f->own = true;
	if (is_switch(s, f->node) && !is_directed(f))
		f->at = s->t.nodes[f->node].port0;
	if (f->has_grh) {
		struct mad_grh grh = f->grh;

		memcpy(f->grh.local, grh.remote, MAD_GID);
		memcpy(f->grh.remote, grh.local, MAD_GID);
	}
}

/* True: it was answered, and f is the answer. */
static int arrive(struct subnet *s, struct flight *f, bool *answered)
{
	uint16_t index;
	int why = check_pkey(s, f, &index);
	enum agent_said said;

	if (why != ARRIVED)
		return why;
	if (f->gmp && f->qpn != 1)
		return SUBNET_DROP_QP;
	if (f->mad[0] != MAD_BASE_VERSION)
		return SUBNET_DROP_VERSION;
	said = f->gmp ? pma_handle(s, f) : sma_handle(s, f);
	if (said == AGENT_BAD_MKEY)
		return SUBNET_DROP_MKEY;
	*answered = said == AGENT_ANSWERED;
	if (said != AGENT_NOT_MINE || deliver(s, f, index))
		return ARRIVED;
	*answered = refuse(f);
	return *answered ? ARRIVED : SUBNET_DROP_NO_AGENT;
}

/* True: at its end. */
static bool travel(struct subnet *s, struct flight *f)
{
	int why;

	do
		why = step(s, f);
	while (why == ON_ITS_WAY);
	if (why >= 0)
		s->drops[why]++;
	return why == ARRIVED;
}

void carry_out(struct subnet *s, struct flight *f)
{
	bool answered = true;

	while (answered) {
		int why;

		answered = false;
		if (!travel(s, f))
			return;
		why = arrive(s, f, &answered);
		if (why >= 0)
			s->drops[why]++;
		if (answered)
			turn(s, f);
	}
}

struct flight carry_smp(struct subnet *s, uint32_t port, uint16_t dlid, uint8_t *mad)
{
	uint16_t lid = tables_load(&hot_at(s, managed_by(s, port))->lid);

	return (struct flight){.at = port,
		.node = hot_at(s, port)->node,
		.own = true,
		.slid = lid ? lid : LID_PERMISSIVE,
		.dlid = dlid,
		.mad = mad};
}

static int check_send(const struct subnet *s, uint32_t port, unsigned qp, const uint8_t *mad)
{
	bool smp = mad[1] == MAD_CLASS_SUBN_LID || mad[1] == MAD_CLASS_SUBN_DR;

	return port && !is_external(s, port) && qp <= 1 && smp == !qp ? 0 : -EINVAL;
}

/* What a datagram has and an SMP has not. */
static int dress(struct subnet *s, struct flight *f, const struct mad_addr *to)
{
	f->gmp = true;
	f->qpn = to->qpn ? to->qpn : 1;
	f->src_qpn = 1;
	f->qkey = to->qkey;
	f->has_grh = to->has_grh;
	f->grh = to->grh;
	if (to->pkey_index >= TABLES_PKEYS)
		return -ENODATA;
	f->pkey = tables_pkey(&s->t, f->at, to->pkey_index);
	return f->pkey ? 0 : -ENODATA;
}

int subnet_send(struct subnet *s, uint32_t node, uint8_t port, unsigned qp,
	const struct mad_addr *to, const uint8_t mad[MAD_SIZE])
{
	uint32_t at = port_of(s, node, port);
	uint8_t copy[MAD_SIZE];
	struct flight f;
	int err = check_send(s, at, qp, mad);

	if (err)
		return err;
	memcpy(copy, mad, MAD_SIZE);
	f = carry_smp(s, at, to->lid, copy);
	if (f.slid != LID_PERMISSIVE)
		f.slid |= to->path_bits & ((1u << tables_load(&hot_at(s, at)->lmc)) - 1);
	f.sl = to->sl & 15;
	if (qp)
		err = dress(s, &f, to);
	if (!err)
		carry_out(s, &f);
	return err;
}
