// SPDX-License-Identifier: BSD-3-Clause
#include "subnet/subnet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "subnet/link.h"
#include "subnet/trap.h"

/* What a port of a topology that says nothing of speeds has: 4x; of a switch's port 0, too. */
enum {
	WIDTH_4X = 2,
	SPEED_SDR = 1,
	ALL_SPEEDS = 7,
	EXT_HDR = 4,
	EXT_NDR = 8,
	EXT_XDR = 32,
	WIDTH_BIT_2X = 16
};

enum { SUBNET_TIMEOUT = 18, ERROR_THRESHOLD = 8, PKEY_DEFAULT = 0xffff };

#define GID_PREFIX 0xfe80000000000000ull

static void *sparse_array(size_t n, size_t each)
{
	void *p = mmap(NULL, n * each, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void free_array(void *p, size_t n, size_t each)
{
	if (p)
		munmap(p, n * each);
}

static bool make_arrays(struct subnet *s)
{
	size_t n = s->t.head->n_ports;

	s->nodes = calloc(s->t.head->n_nodes + 1, sizeof *s->nodes);
	s->ports = sparse_array(n, sizeof *s->ports);
	s->counters = sparse_array(n, sizeof *s->counters);
	s->sl_data = sparse_array(n, sizeof *s->sl_data);
	s->vl_arb = sparse_array(n, sizeof *s->vl_arb);
	s->guids = sparse_array(n, sizeof *s->guids);
	return s->nodes && s->ports && s->counters && s->sl_data && s->vl_arb && s->guids;
}

void subnet_free(struct subnet *s)
{
	size_t n = s->t.head ? s->t.head->n_ports : 0;

	traps_free(s);
	free(s->nodes);
	free_array(s->ports, n, sizeof *s->ports);
	free_array(s->counters, n, sizeof *s->counters);
	free_array(s->sl_data, n, sizeof *s->sl_data);
	free_array(s->vl_arb, n, sizeof *s->vl_arb);
	free_array(s->guids, n, sizeof *s->guids);
	tables_free(&s->t);
	free(s);
}

static int make_tables(struct subnet *s, const struct topo *t)
{
	struct tables_shape *shape = calloc(t->n_nodes + 1, sizeof *shape);
	int err;

	if (!shape)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_nodes; i++)
		shape[i] = (struct tables_shape){t->nodes[i].kind, t->nodes[i].n_ports};
	err = tables_create(&s->t, shape, t->n_nodes);
	free(shape);
	return err;
}

static bool points_back(const struct topo *t, uint32_t node, uint8_t port)
{
	const struct topo_port *p = &t->nodes[node].ports[port], *q;

	if (p->peer == TOPO_NONE)
		return true;
	if (p->peer >= t->n_nodes || !p->peer_port || p->peer_port > t->nodes[p->peer].n_ports)
		return false;
	q = &t->nodes[p->peer].ports[p->peer_port];
	return q->peer == node && q->peer_port == port && q != p;
}

static int check(const struct topo *t)
{
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		if (!t->nodes[i].n_ports || t->nodes[i].n_ports > TOPO_MAX_PORTS)
			return -EINVAL;
		for (unsigned p = 1; p <= t->nodes[i].n_ports; p++)
			if (!points_back(t, i, p))
				return -EINVAL;
	}
	return 0;
}

static uint8_t ext_speeds(const struct topo_node *n)
{
	uint8_t all = 0;

	for (unsigned p = n->kind != TOPO_SWITCH; p <= n->n_ports; p++)
		all |= n->ports[p].ext_speed;
	return all;
}

static uint8_t all_widths(const struct topo_node *n)
{
	uint8_t all = 0;

	for (unsigned p = n->kind != TOPO_SWITCH; p <= n->n_ports; p++)
		all |= n->ports[p].width;
	return all;
}

static void set_caps(struct port *p, const struct topo_node *n)
{
	uint8_t ext = ext_speeds(n);

	p->cap_mask = CAP_TRAP | CAP_SL_MAP | CAP_SYSTEM_GUID | CAP_MASK2 | CAP_CM |
		      CAP_VENDOR_CLASS | CAP_DR_NOTICE | CAP_MASK_NOTICE | CAP_CLIENT_REREGISTER |
		      CAP_OTHER_CHANGES_NOTICE | (ext ? CAP_EXT_SPEEDS : 0) |
		      (n->kind == TOPO_SWITCH ? CAP_SWITCH_PKEY_TRAP | CAP_MULTICAST_TOP : 0);
	p->cap_mask2 = CAP2_SET_NODE_DESC | (ext & EXT_HDR ? CAP2_SPEED_HDR : 0) |
		       (ext & EXT_NDR ? CAP2_SPEED_NDR : 0) |
		       (ext & EXT_XDR ? CAP2_EXT_SPEEDS2 | CAP2_SPEED_XDR : 0) |
		       (all_widths(n) & WIDTH_BIT_2X ? CAP2_WIDTH_2X : 0);
}

static void set_speeds(struct port *p, const struct topo_port *t)
{
	p->width_supported = t->width ? t->width : WIDTH_4X | 1;
	p->speed_supported = t->speed & ALL_SPEEDS ? t->speed & ALL_SPEEDS : SPEED_SDR;
	p->ext_speed_supported = t->ext_speed & TOPO_EXT_SPEEDS;
	p->fdr10_supported = t->speed & TOPO_FDR10;
}

/* What an SM may change of a port, as it is before one does; its link is down. */
static void set_defaults(struct subnet *s, uint32_t port)
{
	struct tables_port *h = hot_at(s, port);
	struct port *p = port_at(s, port);

	p->width_enabled = p->width_supported;
	p->speed_enabled = p->speed_supported;
	p->ext_speed_enabled = p->ext_speed_supported;
	p->fdr10_enabled = p->fdr10_supported;
	p->phys = p->down_default = PHYS_POLLING;
	p->phys_errors = p->overrun_errors = ERROR_THRESHOLD;
	tables_store(&h->mtu, MTU_4096);
	tables_store(&h->vls, VLS);
	if (is_external(s, port))
		return;
	p->gid_prefix = GID_PREFIX;
	p->subnet_timeout = SUBNET_TIMEOUT;
}

static void make_port(struct subnet *s, const struct topo *t, uint32_t node, uint8_t num)
{
	const struct topo_port *from = &t->nodes[node].ports[num];
	uint32_t port = port_of(s, node, num);
	struct tables_port *h = hot_at(s, port);
	struct port *p = port_at(s, port);

	set_speeds(p, from);
	p->num = num;
	set_defaults(s, port);
	tables_store(&h->state, PORT_DOWN);
	if (num && from->peer != TOPO_NONE) {
		p->cable = port_of(s, from->peer, from->peer_port);
		p->plugged = true;
	}
	if (is_external(s, port))
		return;
	p->guid = from->guid ? from->guid : t->nodes[node].guid;
	set_caps(p, &t->nodes[node]);
	tables_store(&h->lid, from->lid);
	tables_store(&h->lmc, from->lmc & 7);
}

static uint8_t port0_state(const struct subnet *s, uint32_t node)
{
	return s->nodes[node].sw.enhanced_port0 ? PORT_INIT : PORT_ACTIVE;
}

/* Port 0 of a switch has no link. */
static void make_port0(struct subnet *s, uint32_t node)
{
	uint32_t port = s->t.nodes[node].port0;
	struct port *p = port_at(s, port);

	p->phys = PHYS_LINK_UP;
	p->width_active = WIDTH_4X;
	p->width_enabled = p->width_supported |= WIDTH_4X;
	p->speed_active = SPEED_SDR;
	p->speed_enabled = p->speed_supported |= SPEED_SDR;
	tables_store(&hot_at(s, port)->state, port0_state(s, node));
}

static void make_node(struct subnet *s, const struct topo *t, uint32_t i)
{
	const struct topo_node *from = &t->nodes[i];
	struct node *n = &s->nodes[i];
	bool sw = from->kind == TOPO_SWITCH;

	n->guid = from->guid;
	n->system_guid = from->system_guid;
	n->vendor = from->vendor;
	n->device = from->device;
	n->sw.enhanced_port0 = from->enhanced;
	if (from->description)
		memcpy(n->desc, from->description, strnlen(from->description, NODE_DESC));
	for (unsigned p = !sw; p <= from->n_ports; p++)
		make_port(s, t, i, p);
	if (sw)
		make_port0(s, i);
}

/* The first links are no changes. */
static void train_all(struct subnet *s)
{
	for (uint32_t p = 1; p < s->t.head->n_ports; p++)
		link_train(s, p);
	for (uint32_t i = 0; i < s->t.head->n_nodes; i++)
		s->nodes[i].sw.port_state_change = 0;
}

int subnet_create(struct subnet **out, const struct topo *t, const struct subnet_ops *ops)
{
	struct subnet *s;
	int err = check(t);

	if (err)
		return err;
	s = calloc(1, sizeof *s);
	if (!s)
		return -ENOMEM;
	s->random = 1;
	err = make_tables(s, t);
	if (!err && !make_arrays(s))
		err = -ENOMEM;
	if (err) {
		subnet_free(s);
		return err;
	}
	for (uint32_t i = 0; i < t->n_nodes; i++)
		make_node(s, t, i);
	train_all(s);
	s->ops = *ops;
	*out = s;
	return 0;
}

const struct tables *subnet_tables(const struct subnet *s)
{
	return &s->t;
}

uint64_t subnet_changes(const struct subnet *s)
{
	return s->changes + tables_load(&s->t.head->epoch); /* neither ever becomes less */
}

int subnet_set_sm(struct subnet *s, uint32_t node, uint8_t port, bool on)
{
	uint32_t at = port_of(s, node, port);
	struct port *p = port_at(s, at);
	uint32_t caps = on ? p->cap_mask | CAP_SM : p->cap_mask & ~(uint32_t)CAP_SM;

	if (!at || is_external(s, at))
		return -EINVAL;
	if (caps == p->cap_mask)
		return 0;
	p->cap_mask = caps;
	changed(s);
	trap_local_change(s, at, 0);
	return 0;
}

static bool port_has_guid(const struct subnet *s, uint32_t node, uint64_t guid, uint32_t but)
{
	if (is_switch(s, node))
		return false;
	for (unsigned p = 1; p <= s->t.nodes[node].n_ports; p++) {
		uint32_t at = port_of(s, node, p);

		if (at != but && port_at(s, at)->guid == guid)
			return true;
	}
	return false;
}

bool subnet_guid_taken(
	const struct subnet *s, uint32_t node, uint8_t port, uint64_t guid, uint32_t *by)
{
	uint32_t at = port ? port_of(s, node, port) : 0;

	for (*by = 0; *by < s->t.head->n_nodes; ++*by)
		if (port ? port_has_guid(s, *by, guid, at)
			 : *by != node && s->nodes[*by].guid == guid)
			return true;
	return false;
}

int subnet_set_guid(struct subnet *s, uint32_t node, uint8_t port, uint64_t guid)
{
	uint32_t at = port_of(s, node, port);

	if (node >= s->t.head->n_nodes || (port && (!at || is_external(s, at))))
		return -EINVAL;
	if (!port)
		s->nodes[node].guid = guid;
	if (at) {
		port_at(s, at)->guid = guid;
		tell(s, at, SUBNET_GID_CHANGE);
	}
	changed(s);
	return 0;
}

/* The SM's part of a port. */
static void forget(struct subnet *s, uint32_t port)
{
	struct tables_port *h = hot_at(s, port);
	struct port *p = port_at(s, port);

	tables_store(&h->lid, 0);
	tables_store(&h->lmc, 0);
	tables_store(&h->enforce, 0);
	for (unsigned i = 0; i < TABLES_PKEYS; i++)
		tables_set_pkey(&s->t, port, i, i ? 0 : PKEY_DEFAULT);
	memset(&s->vl_arb[port], 0, sizeof s->vl_arb[port]);
	memset(s->guids[port], 0, sizeof s->guids[port]);
	p->mkey = p->mkey_until = 0;
	p->mkey_protect = p->sm_sl = p->vl_high_limit = p->vl_stall = p->hoq_life = 0;
	p->filter = p->trap_suppress = 0;
	p->mkey_lease = p->sm_lid = 0;
	p->mkey_violations = p->pkey_violations = p->qkey_violations = 0;
}

int subnet_clear(struct subnet *s, uint32_t node, uint8_t num)
{
	uint32_t port = port_of(s, node, num);

	if (!port)
		return -EINVAL;
	(void)subnet_unlink(s, node, num);
	forget(s, port);
	set_defaults(s, port);
	if (!num) {
		link_set_state(s, port, port0_state(s, node));
		make_port0(s, node);
	}
	tables_changed(&s->t);
	if (!is_external(s, port))
		tell(s, port,
			SUBNET_LID_CHANGE | SUBNET_SM_CHANGE | SUBNET_PKEY_CHANGE |
				SUBNET_GID_CHANGE);
	return 0;
}

int subnet_set_errors(
	struct subnet *s, uint32_t node, uint8_t port, unsigned percent, uint16_t attr)
{
	uint32_t at = port_of(s, node, port);

	if (!at || percent > 100)
		return -EINVAL;
	s->losing += !!percent - !!port_at(s, at)->error_percent;
	port_at(s, at)->error_percent = percent;
	port_at(s, at)->error_attr = attr;
	return 0;
}

uint64_t subnet_drops(const struct subnet *s, enum subnet_drop why)
{
	return s->drops[why];
}

const char *subnet_drop_name(enum subnet_drop why)
{
	static const char *const names[SUBNET_DROP_COUNT] = {
		[SUBNET_DROP_VERSION] = "version",
		[SUBNET_DROP_ROUTE] = "directed_route",
		[SUBNET_DROP_LINK] = "no_link",
		[SUBNET_DROP_LID] = "no_lid",
		[SUBNET_DROP_LOOP] = "loop",
		[SUBNET_DROP_PKEY] = "pkey",
		[SUBNET_DROP_VL] = "no_vl",
		[SUBNET_DROP_MKEY] = "mkey",
		[SUBNET_DROP_INJECTED] = "injected",
		[SUBNET_DROP_QP] = "no_qp",
		[SUBNET_DROP_NO_AGENT] = "no_agent",
	};

	return names[why];
}
