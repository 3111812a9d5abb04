// SPDX-License-Identifier: BSD-3-Clause
#include "subnet/sma_port.h"

#include "subnet/link.h"
#include "subnet/trap.h"

enum {
	PORT_BITS = 0xff,
	ALL_WIDTHS = 0xff,
	ALL_SPEEDS = 15,
	ALL_EXT_SPEEDS = 31,
	ALL_EXT_SPEEDS2 = 7,
};

/* The port that the attribute modifier means; 0: there is none. */
static uint32_t meant(const struct sma *c)
{
	uint8_t p = c->h.attr_mod & PORT_BITS;

	if (!p && !is_switch(c->s, c->node))
		return c->port;
	return port_of(c->s, c->node, p);
}

/* OperationalVLs and VLCap as codes: 1 VL0, 2 to VL1, 3 to VL3, 4 to VL7, 5 to VL14. */
static const uint8_t vls_of_code[] = {0, 1, 2, 4, 8, 15};

static uint8_t code_of_vls(uint8_t vls)
{
	uint8_t code = VL_CAP;

	while (code > 1 && vls_of_code[code] > vls)
		code--;
	return code;
}

/* What every port has of its own. */
static void get_link(const struct subnet *s, uint32_t port, struct port_info *i)
{
	const struct port *p = port_at(s, port);
	const struct tables_port *h = hot_at(s, port);

	i->width_enabled = p->width_enabled;
	i->width_supported = p->width_supported;
	i->width_active = p->width_active;
	i->speed_supported = p->speed_supported;
	i->speed_enabled = p->speed_enabled;
	i->speed_active = p->speed_active;
	i->ext_speed_supported = p->ext_speed_supported & EXT_SPEEDS;
	i->ext_speed_enabled = p->ext_speed_enabled & EXT_SPEEDS;
	i->ext_speed_active = p->ext_speed_active & EXT_SPEEDS;
	i->ext_speed2_supported = p->ext_speed_supported >> EXT_SPEEDS2_AT;
	i->ext_speed2_enabled = p->ext_speed_enabled >> EXT_SPEEDS2_AT;
	i->ext_speed2_active = p->ext_speed_active >> EXT_SPEEDS2_AT;
	i->state = tables_load(&h->state);
	i->phys_state = p->phys;
	i->down_default = p->down_default;
	i->neighbor_mtu = tables_load(&h->mtu);
	i->oper_vls = code_of_vls(tables_load(&h->vls));
	i->mtu_cap = MTU_4096;
	i->vl_cap = VL_CAP;
	i->vl_arb_high_cap = i->vl_arb_low_cap = VL_ARB_CAP;
	i->vl_high_limit = p->vl_high_limit;
	i->vl_stall = p->vl_stall;
	i->hoq_life = p->hoq_life;
	i->part_in = (tables_load(&h->enforce) & ENFORCE_IN) != 0;
	i->part_out = (tables_load(&h->enforce) & ENFORCE_OUT) != 0;
	i->filter_in = p->filter & 1;
	i->filter_out = p->filter >> 1;
	i->local_phys_errors = p->phys_errors;
	i->overrun_errors = p->overrun_errors;
}

/* What only a port with a LID of its own has. */
static void get_managed(const struct sma *c, uint32_t port, struct port_info *i)
{
	const struct port *p = port_at(c->s, port);
	const struct tables_port *h = hot_at(c->s, port);

	/* Level 0 shows the key to everybody. */
	i->mkey = c->knows_key || !p->mkey_protect ? p->mkey : 0;
	i->mkey_protect = p->mkey_protect;
	i->mkey_lease = p->mkey_lease;
	i->gid_prefix = p->gid_prefix;
	i->lid = tables_load(&h->lid);
	i->lmc = tables_load(&h->lmc);
	i->sm_lid = p->sm_lid;
	i->sm_sl = p->sm_sl;
	i->cap_mask = p->cap_mask;
	i->cap_mask2 = p->cap_mask2;
	i->mkey_violations = p->mkey_violations;
	i->pkey_violations = p->pkey_violations;
	i->qkey_violations = p->qkey_violations;
	i->guid_cap = PORT_GUIDS;
	i->mcast_trap_suppress = p->trap_suppress;
	i->subnet_timeout = p->subnet_timeout;
	i->resp_time = RESP_TIME;
	i->client_reregister = c->reregister;
}

static void get_all(const struct sma *c, uint32_t port, struct port_info *i)
{
	i->local_port = c->in;
	get_link(c->s, port, i);
	if (!is_external(c->s, port))
		get_managed(c, port, i);
}

uint16_t sma_get_port_info(struct sma *c)
{
	struct port_info i = {0};
	uint32_t port = meant(c);

	if (!port)
		return SMP_INVALID;
	get_all(c, port, &i);
	wire_pack(&port_info_format, &i, c->data);
	return SMP_OK;
}

/* A mask of what is enabled: 0 leaves it, all means what is supported. */
static bool choose(uint8_t asked, uint8_t all, uint8_t supported, uint8_t *enabled)
{
	if (asked == all)
		asked = supported;
	if (asked & ~supported)
		return false;
	if (asked)
		*enabled = asked;
	return true;
}

/* The same of extended speeds: one less than all means none. */
static bool choose_ext(uint8_t asked, uint8_t all, uint8_t supported, uint8_t *enabled)
{
	if (asked != all - 1)
		return choose(asked, all, supported, enabled);
	*enabled = 0;
	return true;
}

static bool choose_speeds(const struct port_info *i, struct port *p)
{
	uint8_t ext = p->ext_speed_enabled & EXT_SPEEDS;
	uint8_t ext2 = p->ext_speed_enabled >> EXT_SPEEDS2_AT;

	if (!choose(i->width_enabled, ALL_WIDTHS, p->width_supported, &p->width_enabled) ||
		!choose(i->speed_enabled, ALL_SPEEDS, p->speed_supported, &p->speed_enabled) ||
		!choose_ext(i->ext_speed_enabled, ALL_EXT_SPEEDS,
			p->ext_speed_supported & EXT_SPEEDS, &ext) ||
		!choose_ext(i->ext_speed2_enabled, ALL_EXT_SPEEDS2,
			p->ext_speed_supported >> EXT_SPEEDS2_AT, &ext2))
		return false;
	p->ext_speed_enabled = ext | ext2 << EXT_SPEEDS2_AT;
	return true;
}

/* Which states an SM may ask for; a port 0 of the base kind is always active. */
static bool state_allowed(const struct port_info *i, uint8_t state)
{
	switch (i->state) {
	case PORT_NOP:
		return true;
	case PORT_DOWN:
		return i->phys_state <= PHYS_DISABLED;
	case PORT_ARMED:
		return !i->phys_state && (state == PORT_INIT || state == PORT_ARMED);
	case PORT_ACTIVE:
		return !i->phys_state && (state == PORT_ARMED || state == PORT_ACTIVE);
	default:
		return false;
	}
}

static bool lid_allowed(const struct port_info *i, const struct tables_port *h)
{
	if (i->lid == tables_load(&h->lid) && i->lmc == tables_load(&h->lmc))
		return true;
	return i->lid && i->lid + (1u << i->lmc) <= LID_MULTICAST &&
	       !(i->lid & ((1u << i->lmc) - 1));
}

static bool link_allowed(const struct port_info *i, uint32_t port, const struct subnet *s)
{
	struct port trial = *port_at(s, port);

	return choose_speeds(i, &trial) && i->phys_state <= PHYS_DISABLED &&
	       i->down_default <= PHYS_POLLING && i->neighbor_mtu && i->neighbor_mtu <= MTU_4096 &&
	       i->oper_vls <= VL_CAP && state_allowed(i, tables_load(&hot_at(s, port)->state));
}

static bool is_base_port0(const struct subnet *s, uint32_t port)
{
	return !port_at(s, port)->num && !s->nodes[hot_at(s, port)->node].sw.enhanced_port0;
}

static bool allowed(const struct sma *c, uint32_t port, const struct port_info *i)
{
	if (!is_external(c->s, port) &&
		(!lid_allowed(i, hot_at(c->s, port)) || i->sm_lid >= LID_MULTICAST))
		return false;
	return is_base_port0(c->s, port) || link_allowed(i, port, c->s);
}

/* Writing 0 clears a counter of violations, any other value leaves it. */
static void clear_if_zero(uint16_t *n, uint16_t written)
{
	if (!written)
		*n = 0;
}

static unsigned set_lids(struct subnet *s, uint32_t port, const struct port_info *i)
{
	struct tables_port *h = hot_at(s, port);
	struct port *p = port_at(s, port);
	unsigned events = 0;

	if (i->lid != tables_load(&h->lid) || i->lmc != tables_load(&h->lmc)) {
		tables_store(&h->lid, i->lid);
		tables_store(&h->lmc, i->lmc);
		tables_changed(&s->t);
		events |= SUBNET_LID_CHANGE;
	}
	if (i->sm_lid != p->sm_lid || i->sm_sl != p->sm_sl)
		events |= SUBNET_SM_CHANGE;
	if (i->gid_prefix != p->gid_prefix)
		events |= SUBNET_GID_CHANGE;
	p->sm_lid = i->sm_lid;
	p->sm_sl = i->sm_sl;
	p->gid_prefix = i->gid_prefix;
	return events;
}

static void set_managed(struct sma *c, uint32_t port, const struct port_info *i)
{
	struct port *p = port_at(c->s, port);
	unsigned events = set_lids(c->s, port, i);

	p->mkey = i->mkey;
	p->mkey_protect = i->mkey_protect;
	p->mkey_lease = i->mkey_lease;
	p->mkey_until = 0;
	clear_if_zero(&p->mkey_violations, i->mkey_violations);
	clear_if_zero(&p->pkey_violations, i->pkey_violations);
	clear_if_zero(&p->qkey_violations, i->qkey_violations);
	p->trap_suppress = i->mcast_trap_suppress;
	p->subnet_timeout = i->subnet_timeout;
	c->reregister = i->client_reregister;
	tell(c->s, port, events | (i->client_reregister ? SUBNET_CLIENT_REREGISTER : 0));
}

/* Returns which of NodeDescription's sisters in trap 144 have changed. */
static unsigned set_speeds(struct port *p, const struct port_info *i)
{
	uint8_t width = p->width_enabled, speed = p->speed_enabled, ext = p->ext_speed_enabled;

	(void)choose_speeds(i, p);
	return (width != p->width_enabled ? CHANGED_WIDTH : 0) |
	       (speed != p->speed_enabled || ext != p->ext_speed_enabled ? CHANGED_SPEED : 0);
}

/* What the data path reads. */
static void set_hot(struct subnet *s, uint32_t port, const struct port_info *i)
{
	struct tables_port *h = hot_at(s, port);
	uint8_t vls = i->oper_vls ? vls_of_code[i->oper_vls] : tables_load(&h->vls);
	uint8_t enforce = (i->part_in ? ENFORCE_IN : 0) | (i->part_out ? ENFORCE_OUT : 0);

	if (!is_external(s, port))
		enforce = 0;
	if (i->neighbor_mtu == tables_load(&h->mtu) && vls == tables_load(&h->vls) &&
		enforce == tables_load(&h->enforce))
		return;
	tables_store(&h->mtu, i->neighbor_mtu);
	tables_store(&h->vls, vls);
	tables_store(&h->enforce, enforce);
	tables_changed(&s->t);
}

/* New speeds and widths count from the next training on. */
static void set_state(struct subnet *s, uint32_t port, const struct port_info *i)
{
	uint8_t down = i->phys_state ? i->phys_state : port_at(s, port)->down_default;

	if (!port_at(s, port)->num) {
		if (i->state > PORT_DOWN)
			link_set_state(s, port, i->state);
	} else if (i->phys_state || i->state == PORT_DOWN) {
		link_drop(s, port, down);
		link_train(s, port);
	} else if (i->state) {
		link_set_state(s, port, i->state);
	}
}

static void set_link(struct subnet *s, uint32_t port, const struct port_info *i)
{
	struct port *p = port_at(s, port);
	unsigned changes = set_speeds(p, i);

	p->vl_high_limit = i->vl_high_limit;
	p->vl_stall = i->vl_stall;
	p->hoq_life = i->hoq_life;
	p->filter = i->filter_in | i->filter_out << 1;
	p->phys_errors = i->local_phys_errors;
	p->overrun_errors = i->overrun_errors;
	if (i->down_default)
		p->down_default = i->down_default;
	set_hot(s, port, i);
	if (changes)
		trap_local_change(s, managed_by(s, port), changes);
	set_state(s, port, i);
}

uint16_t sma_set_port_info(struct sma *c)
{
	uint32_t port = meant(c);
	struct port_info i;

	wire_unpack(&port_info_format, c->data, &i);
	if (!port || !allowed(c, port, &i))
		return SMP_INVALID;
	if (!is_external(c->s, port))
		set_managed(c, port, &i);
	if (!is_base_port0(c->s, port))
		set_link(c->s, port, &i);
	return SMP_OK;
}

/* ---- Mellanox's ---- */

uint16_t sma_get_ext_port_info(struct sma *c)
{
	uint32_t port = meant(c);
	const struct port *p = port_at(c->s, port);
	const struct ext_port_info i = {.speed_supported = p->fdr10_supported ? EXT_PORT_FDR10 : 0,
		.speed_enabled = p->fdr10_enabled ? EXT_PORT_FDR10 : 0,
		.speed_active = p->fdr10_active ? EXT_PORT_FDR10 : 0};

	if (!port)
		return SMP_INVALID;
	wire_pack(&ext_port_info_format, &i, c->data);
	return SMP_OK;
}

/* As with other speeds, the next training is what it counts for. */
uint16_t sma_set_ext_port_info(struct sma *c)
{
	uint32_t port = meant(c);
	struct port *p = port_at(c->s, port);
	struct ext_port_info i;

	wire_unpack(&ext_port_info_format, c->data, &i);
	if (!port || i.speed_enabled & ~EXT_PORT_FDR10 || (i.speed_enabled && !p->fdr10_supported))
		return SMP_INVALID;
	if (i.set & EXT_PORT_SET_SPEED)
		p->fdr10_enabled = i.speed_enabled;
	return SMP_OK;
}
