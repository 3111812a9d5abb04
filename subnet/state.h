/* SPDX-License-Identifier: BSD-3-Clause */
/* The live state of a subnet, apart from what forwarding reads (fabric/tables.h). */
#pragma once

#include "base/deadline.h"
#include "subnet/subnet.h"
#include "wire/smp.h"

/*
 * Counters of a port.  The first are those of PortCounters, in the order of their select bits,
 * which shows no more of them than its fields hold; PortCountersExtended shows all.
 */
enum counter {
	COUNT_SYMBOL_ERROR,
	COUNT_LINK_RECOVERY,
	COUNT_LINK_DOWNED,
	COUNT_RCV_ERRORS,
	COUNT_RCV_REMOTE_PHYSICAL,
	COUNT_RCV_SWITCH_RELAY,
	COUNT_XMIT_DISCARDS,
	COUNT_XMIT_CONSTRAINT,
	COUNT_RCV_CONSTRAINT,
	COUNT_LINK_INTEGRITY,
	COUNT_BUFFER_OVERRUN,
	COUNT_VL15_DROPPED,
	COUNT_XMIT_DATA,
	COUNT_RCV_DATA,
	COUNT_XMIT_PKTS,
	COUNT_RCV_PKTS,
	COUNT_XMIT_WAIT,
	COUNT_CLASSIC,
	COUNT_UNICAST_XMIT = COUNT_CLASSIC,
	COUNT_UNICAST_RCV,
	COUNT_MULTICAST_XMIT,
	COUNT_MULTICAST_RCV,
	COUNT_QP1_DROPPED,
	COUNT_ALL
};

/* Those of PortRcvErrorDetails, then those of PortXmitDiscardDetails, each in order of bits. */
enum detail {
	DETAIL_LOCAL_PHYSICAL,
	DETAIL_MALFORMED,
	DETAIL_OVERRUN,
	DETAIL_DLID_MAPPING,
	DETAIL_VL_MAPPING,
	DETAIL_LOOPING,
	DETAIL_INACTIVE,
	DETAIL_NEIGHBOR_MTU,
	DETAIL_LIFETIME,
	DETAIL_HOQ_LIFETIME,
	DETAIL_ALL,
	DETAIL_XMIT = DETAIL_INACTIVE /* the first of the second attribute */
};

struct counters {
	uint64_t all[COUNT_ALL];
	uint16_t detail[DETAIL_ALL];
};

enum { DATA_XMIT, DATA_RCV };

struct sl_data {
	uint32_t words[2][SMP_SLS]; /* XmitDataSL, RcvDataSL */
};

enum { VL_ARB_BLOCKS = 2, PORT_GUIDS = SMP_GUIDS, NODE_DESC = 64 };

struct vl_arb { /* xor the default; low and high priority */
	uint8_t block[VL_ARB_BLOCKS][SMP_DATA_SIZE];
};

enum { EXT_SPEEDS = 15, EXT_SPEEDS2_AT = 5 };

struct trap; /* subnet/trap.c */

struct port {
	uint64_t guid, mkey, gid_prefix;
	uint64_t mkey_until; /* the lease ends; 0: it does not run */
	struct trap *traps;
	uint32_t cable; /* where it leads, plugged or not; 0: nowhere */
	uint32_t cap_mask;
	uint16_t cap_mask2, sm_lid, mkey_lease;
	uint16_t mkey_violations, pkey_violations, qkey_violations;
	uint16_t error_attr;
	uint8_t error_percent;
	uint8_t num;
	bool plugged;
	uint8_t phys; /* enum phys_state */
	uint8_t down_default;
	uint8_t width_supported, width_enabled, width_active;
	uint8_t speed_supported, speed_enabled, speed_active;
	/* PortInfo's first extended speeds and, from bit 5 on, its second ones. */
	uint8_t ext_speed_supported, ext_speed_enabled, ext_speed_active;
	bool fdr10_supported, fdr10_enabled, fdr10_active;
	uint8_t mkey_protect, sm_sl, vl_high_limit;
	uint8_t vl_stall, hoq_life, filter; /* bit 0 in, bit 1 out */
	uint8_t trap_suppress, subnet_timeout, phys_errors, overrun_errors;
};

struct node {
	uint64_t guid, system_guid;
	uint32_t vendor, device;
	struct switch_info sw; /* what tables lack of it */
	uint8_t desc[NODE_DESC];
};

struct subnet {
	struct tables t;
	struct node *nodes;
	/* By number of the port; pages that were never written do not exist. */
	struct port *ports;
	struct counters *counters;
	struct sl_data *sl_data;
	struct vl_arb *vl_arb;
	uint64_t (*guids)[PORT_GUIDS]; /* from index 1: 0 is the port's own */
	struct subnet_ops ops;

	struct deadlines deadlines; /* of traps */
	struct trap *spare_traps;
	struct trap_slab *slabs;
	uint64_t next_tid, random;
	uint64_t changes; /* of what no table has and subnet_changes() tells of */
	uint32_t losing; /* ports with an error_percent: where there is none, no hop looks for it */
	uint64_t drops[SUBNET_DROP_COUNT];
};

/* PortInfo's constants of every port. */
enum {
	MTU_4096 = 5,
	VL_CAP = 4, /* VL0 to VL7 */
	VLS = 8,
	VL_ARB_CAP = 32,
	RESP_TIME = 16,
};

static inline bool is_switch(const struct subnet *s, uint32_t node)
{
	return s->t.nodes[node].kind == TABLES_SWITCH;
}

static inline struct port *port_at(const struct subnet *s, uint32_t port)
{
	return &s->ports[port];
}

static inline struct tables_port *hot_at(const struct subnet *s, uint32_t port)
{
	return &s->t.ports[port];
}

/* Port p of a node; 0: it has none. */
static inline uint32_t port_of(const struct subnet *s, uint32_t node, uint8_t p)
{
	if (node >= s->t.head->n_nodes || p > s->t.nodes[node].n_ports)
		return 0;
	return p || is_switch(s, node) ? s->t.nodes[node].port0 + p : 0;
}

/* The port whose LID, keys and SM count for management at port p: a switch has one for all. */
static inline uint32_t managed_by(const struct subnet *s, uint32_t port)
{
	return tables_managed(&s->t, port);
}

/* An external port of a switch. */
static inline bool is_external(const struct subnet *s, uint32_t port)
{
	return managed_by(s, port) != port;
}

static inline void count(struct subnet *s, uint32_t port, enum counter which, uint32_t n)
{
	s->counters[port].all[which] += n;
}

static inline void count_detail(struct subnet *s, uint32_t port, enum detail which)
{
	uint16_t *n = &s->counters[port].detail[which];

	*n += *n < UINT16_MAX;
}

/* Something that a node's page may show is not as it was, or was set to what it was. */
static inline void changed(struct subnet *s)
{
	s->changes++;
}

static inline void tell(struct subnet *s, uint32_t port, unsigned events)
{
	if (events && s->ops.event)
		s->ops.event(s->ops.arg, s->t.ports[port].node, s->ports[port].num, events);
}
