// SPDX-License-Identifier: BSD-3-Clause
#include "subnet/trap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SLAB_TRAPS = 64, TIMEOUT_UNIT_NS = 4096, TIMEOUT_LEAST = 8, TIMEOUT_MASK = 31 };

struct trap {
	struct deadline deadline; /* first member */
	struct trap *next;        /* of its port, or spare */
	uint64_t tid;
	uint32_t port;
	uint16_t number;
	bool repressed;
	bool again; /* repressed, but something new has happened */
	uint8_t attr[NOTICE_SIZE];
};

struct trap_slab {
	struct trap_slab *next;
	struct trap traps[SLAB_TRAPS];
};

static const struct trap_kind {
	uint16_t number;
	uint8_t type;
	bool rare; /* a new one need not wait for the time of a repressed one to be over */
} kinds[] = {
	{TRAP_LINK_STATE, NOTICE_URGENT, true},
	{TRAP_LINK_INTEGRITY, NOTICE_URGENT, false},
	{TRAP_BUFFER_OVERRUN, NOTICE_URGENT, false},
	{TRAP_WATCHDOG, NOTICE_URGENT, false},
	{TRAP_LOCAL_CHANGES, NOTICE_INFO, true},
	{TRAP_SYSTEM_GUID, NOTICE_INFO, true},
	{TRAP_BAD_MKEY, NOTICE_SECURITY, false},
	{TRAP_BAD_PKEY, NOTICE_SECURITY, false},
	{TRAP_BAD_QKEY, NOTICE_SECURITY, false},
	{TRAP_SWITCH_BAD_PKEY, NOTICE_SECURITY, false},
};

static const struct trap_kind *kind_of(uint16_t number)
{
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (kinds[i].number == number)
			return &kinds[i];
	return NULL;
}

static bool more_traps(struct subnet *s)
{
	struct trap_slab *slab = calloc(1, sizeof *slab);

	if (!slab)
		return false;
	slab->next = s->slabs;
	s->slabs = slab;
	for (int i = 0; i < SLAB_TRAPS; i++) {
		slab->traps[i].next = s->spare_traps;
		s->spare_traps = &slab->traps[i];
	}
	return true;
}

static struct trap *find(const struct subnet *s, uint32_t port, uint16_t number)
{
	struct trap *t = port_at(s, port)->traps;

	while (t && t->number != number)
		t = t->next;
	return t;
}

static struct trap *add(struct subnet *s, uint32_t port, uint16_t number)
{
	struct trap *t;

	if (!s->spare_traps && !more_traps(s))
		return NULL;
	t = s->spare_traps;
	s->spare_traps = t->next;
	*t = (struct trap){
		.next = port_at(s, port)->traps, .port = port, .number = number, .repressed = true};
	port_at(s, port)->traps = t;
	return t;
}

static void drop(struct subnet *s, struct trap *t)
{
	struct trap **at = &port_at(s, t->port)->traps;

	deadline_clear(&s->deadlines, &t->deadline);
	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	t->next = s->spare_traps;
	s->spare_traps = t;
}

static uint64_t interval(const struct port *p)
{
	unsigned n = p->subnet_timeout & TIMEOUT_MASK;

	return (uint64_t)TIMEOUT_UNIT_NS << (n < TIMEOUT_LEAST ? TIMEOUT_LEAST : n);
}

static void send(struct subnet *s, struct trap *t)
{
	struct smp_hdr h = {.base_version = MAD_BASE_VERSION,
		.mgmt_class = MAD_CLASS_SUBN_LID,
		.class_version = SMP_CLASS_VERSION,
		.method = MAD_TRAP,
		.tid = t->tid,
		.attr = SMP_NOTICE};
	uint8_t mad[MAD_SIZE] = {0};
	struct flight f = carry_smp(s, t->port, port_at(s, t->port)->sm_lid, mad);

	wire_pack(&smp_hdr_format, &h, mad);
	memcpy(mad + SMP_DATA, t->attr, NOTICE_SIZE);
	f.sl = port_at(s, t->port)->sm_sl;
	carry_out(s, &f);
}

/* Sends it now, and again after an interval; a trap without a deadline would never be sent again.
 */
static void send_and_wait(struct subnet *s, struct trap *t)
{
	uint64_t when = s->ops.now(s->ops.arg) + interval(port_at(s, t->port));

	t->repressed = t->again = false;
	if (deadline_set(&s->deadlines, &t->deadline, when)) {
		drop(s, t);
		return;
	}
	send(s, t);
}

void trap_raise(struct subnet *s, uint32_t port, struct notice *n)
{
	const struct trap_kind *k = kind_of(n->trap);
	struct port *p = port_at(s, port);
	struct trap *t = find(s, port, n->trap);
	bool first = !t;

	n->issuer = tables_load(&hot_at(s, port)->lid);
	if (!p->sm_lid || !n->issuer || !k || (!t && !(t = add(s, port, n->trap))))
		return;
	n->generic = 1;
	n->type = k->type;
	n->producer = s->t.nodes[hot_at(s, port)->node].kind;
	notice_pack(n, t->attr);
	t->tid = ++s->next_tid;
	if (first || (t->repressed && k->rare))
		send_and_wait(s, t);
	else
		t->again = true;
}

void trap_repress(struct subnet *s, uint32_t port, uint64_t tid, const uint8_t attr[NOTICE_SIZE])
{
	struct trap *t;
	struct notice n;

	notice_unpack(attr, &n);
	t = find(s, port, n.trap);
	if (t && t->tid == tid)
		t->repressed = true;
}

void trap_latest(const struct subnet *s, uint32_t port, uint8_t attr[NOTICE_SIZE])
{
	const struct trap *best = NULL;

	for (const struct trap *t = port_at(s, port)->traps; t; t = t->next)
		if (!t->repressed && (!best || t->tid > best->tid))
			best = t;
	memset(attr, 0, NOTICE_SIZE);
	if (best)
		memcpy(attr, best->attr, NOTICE_SIZE);
}

void subnet_run(struct subnet *s)
{
	uint64_t now = s->ops.now(s->ops.arg);
	struct deadline *d;

	while ((d = deadline_pop(&s->deadlines, now))) {
		struct trap *t = (struct trap *)d;

		if ((t->repressed && !t->again) || !port_at(s, t->port)->sm_lid)
			drop(s, t);
		else
			send_and_wait(s, t);
	}
}

uint64_t subnet_next(const struct subnet *s)
{
	return deadline_next(&s->deadlines);
}

void traps_free(struct subnet *s)
{
	deadlines_free(&s->deadlines);
	while (s->slabs) {
		struct trap_slab *next = s->slabs->next;

		free(s->slabs);
		s->slabs = next;
	}
}

void trap_link_state(struct subnet *s, uint32_t port)
{
	struct notice n = {.trap = TRAP_LINK_STATE, .lid = tables_load(&hot_at(s, port)->lid)};

	trap_raise(s, port, &n);
}

void trap_local_change(struct subnet *s, uint32_t port, unsigned changes)
{
	const struct port *p = port_at(s, port);
	struct notice n = {.trap = TRAP_LOCAL_CHANGES,
		.lid = tables_load(&hot_at(s, port)->lid),
		.other_changes = changes != 0,
		.cap_mask = p->cap_mask,
		.change_flags = changes,
		.cap_mask2 = p->cap_mask2};

	trap_raise(s, port, &n);
}

void trap_bad_mkey(struct subnet *s, uint32_t port, const struct flight *f)
{
	struct notice n = {.trap = TRAP_BAD_MKEY, .lid = f->slid};
	struct smp_hdr h;

	wire_unpack(&smp_hdr_format, f->mad, &h);
	n.method = h.method;
	n.attr = h.attr;
	n.attr_mod = h.attr_mod;
	n.mkey = h.mkey;
	if (h.mgmt_class == MAD_CLASS_SUBN_DR) {
		n.directed = 1;
		n.dr_slid = h.dr_slid;
		n.path_cut = h.hop_cnt > NOTICE_PATH;
		n.hops = n.path_cut ? NOTICE_PATH : h.hop_cnt;
		memcpy(n.path, f->mad + SMP_RETURN_PATH + 1, n.hops);
	}
	trap_raise(s, port, &n);
}

static struct notice bad_key(const struct flight *f, enum notice_trap trap, uint32_t key)
{
	struct notice n = {.trap = trap,
		.lid = f->slid,
		.lid2 = f->dlid,
		.key = key,
		.sl = f->sl,
		.qp1 = f->src_qpn,
		.qp2 = f->qpn};

	if (f->has_grh) {
		memcpy(n.gid1, f->grh.local, NOTICE_GID);
		memcpy(n.gid2, f->grh.remote, NOTICE_GID);
	}
	return n;
}

void trap_bad_pkey(struct subnet *s, uint32_t port, const struct flight *f)
{
	struct notice n = bad_key(f, TRAP_BAD_PKEY, f->pkey);

	trap_raise(s, port, &n);
}

void trap_switch_bad_pkey(struct subnet *s, uint32_t port, const struct flight *f)
{
	enum { HAS_LIDS = 3, HAS_PKEY = 4, HAS_SL = 8, HAS_QPS = 0x30, HAS_GIDS = 0xc0 };
	struct notice n = bad_key(f, TRAP_SWITCH_BAD_PKEY, f->pkey);
	uint32_t self = managed_by(s, port);

	n.valid = HAS_LIDS | HAS_PKEY | HAS_SL | HAS_QPS | (f->has_grh ? HAS_GIDS : 0);
	n.switch_lid = tables_load(&hot_at(s, self)->lid);
	n.port = port_at(s, port)->num;
	trap_raise(s, self, &n);
}

int subnet_bad_qkey(
	struct subnet *s, uint32_t node, uint8_t port, const struct mad_addr *from, uint32_t to_qpn)
{
	uint32_t at = port_of(s, node, port);
	struct flight f = {.slid = from->lid,
		.sl = from->sl & 15,
		.src_qpn = from->qpn,
		.qpn = to_qpn,
		.has_grh = from->has_grh};
	struct notice n;

	if (!at || is_external(s, at))
		return -EINVAL;
	memcpy(f.grh.local, from->grh.remote, MAD_GID);
	memcpy(f.grh.remote, from->grh.local, MAD_GID);
	f.dlid = tables_load(&hot_at(s, at)->lid);
	port_at(s, at)->qkey_violations += port_at(s, at)->qkey_violations < UINT16_MAX;
	n = bad_key(&f, TRAP_BAD_QKEY, from->qkey);
	trap_raise(s, at, &n);
	return 0;
}

/* The counter that goes with it; COUNT_ALL: none does. */
static enum counter counter_of(unsigned trap)
{
	if (trap == TRAP_LINK_INTEGRITY)
		return COUNT_LINK_INTEGRITY;
	return trap == TRAP_BUFFER_OVERRUN ? COUNT_BUFFER_OVERRUN : COUNT_ALL;
}

int subnet_link_fault(struct subnet *s, uint32_t node, uint8_t port, unsigned trap)
{
	struct notice n = {.trap = trap, .port = port};
	uint32_t at = port_of(s, node, port);

	if (!at || trap < TRAP_LINK_INTEGRITY || trap > TRAP_WATCHDOG)
		return -EINVAL;
	if (counter_of(trap) != COUNT_ALL)
		count(s, at, counter_of(trap), 1);
	n.lid = tables_load(&hot_at(s, managed_by(s, at))->lid);
	trap_raise(s, managed_by(s, at), &n);
	return 0;
}

int subnet_set_system_guid(struct subnet *s, uint32_t node, uint64_t guid)
{
	struct notice n = {.trap = TRAP_SYSTEM_GUID, .system_guid = guid};
	bool sw;

	if (node >= s->t.head->n_nodes)
		return -EINVAL;
	s->nodes[node].system_guid = guid;
	changed(s);
	sw = is_switch(s, node);
	/* Of an adapter each port tells its own SM. */
	for (unsigned p = !sw; p <= (sw ? 0u : s->t.nodes[node].n_ports); p++) {
		uint32_t port = port_of(s, node, p);

		n.lid = tables_load(&hot_at(s, port)->lid);
		trap_raise(s, port, &n);
	}
	return 0;
}
