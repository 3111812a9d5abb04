/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What forwarding reads of an InfiniBand subnet: links, port states, LIDs, P_Keys, SL to VL and
 * forwarding tables.  One mapping without pointers in it, of a memfd that the process which made it
 * writes, and nobody else can: others map it to read (tables_map(), fabric/walk.h).  A reader may
 * see entries of two moments, as a packet on a wire does; a change of the epoch says that what was
 * found before may be old.
 *
 * Ports are numbered through, from 1; port p of a node is port0 + p.  Only switches have a port 0.
 * Memory that was never written is zero, and zero means the default everywhere: no page of it
 * exists until a subnet manager says otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/atomic.h"

enum {
	TABLES_PKEYS = 64, /* of each port */
	TABLES_LIDS = 0xc000,
	TABLES_MLIDS = 1024,
	TABLES_SLS = 16,
	TABLES_NO_PORT = 0xff,
};

enum tables_kind { TABLES_CA = 1, TABLES_SWITCH = 2, TABLES_ROUTER = 3 };

enum tables_enforce { ENFORCE_IN = 1, ENFORCE_OUT = 2 }; /* P_Keys, at a switch's port */

/* Of a port's states those that let data through: ARMED comes in only. */
enum { TABLES_ARMED = 3, TABLES_ACTIVE = 4 };

struct tables_port {
	uint32_t node;         /* fixed */
	_Atomic uint32_t peer; /* at the other end of a link that is up; 0: there is none */
	_Atomic uint16_t lid;
	_Atomic uint8_t lmc;
	_Atomic uint8_t state; /* enum port_state */
	_Atomic uint8_t mtu;   /* NeighborMTU */
	_Atomic uint8_t vls;   /* operational data VLs */
	_Atomic uint8_t enforce;
	_Atomic uint8_t own_pkeys; /* else 0xffff at index 0 */
};

struct tables_node {
	uint32_t port0;
	uint8_t kind, n_ports;
	_Atomic uint8_t own_sl2vl;
	_Atomic uint16_t lft_top, mft_top;
	uint64_t sl2vl, lft, mft; /* where its own begin */
};

struct tables_head {
	_Atomic uint64_t epoch;
	uint32_t n_nodes, n_ports;      /* ports with the unused one at 0 */
	uint64_t n_sl2vl, n_lft, n_mft; /* entries of all nodes */
};

/* The mapping as this process sees it. */
struct tables {
	void *base;
	size_t size;
	int fd; /* the memfd, of who made them; -1: of others */
	struct tables_head *head;
	struct tables_node *nodes;
	struct tables_port *ports;
	_Atomic uint16_t *pkeys; /* [port][TABLES_PKEYS] */
	_Atomic uint64_t *sl2vl; /* of a node: [in][out] of a switch, else [out - 1] */
	_Atomic uint8_t *lft;    /* of a switch: [LID], complement of the port */
	_Atomic uint16_t *mft;   /* of a switch: [MLID - 0xc000][position] */
};

struct tables_shape {
	uint8_t kind, n_ports;
};

#define tables_load(p)     atomic_load_explicit(p, memory_order_relaxed)
#define tables_store(p, v) atomic_store_explicit(p, v, memory_order_relaxed)

/* Makes tables of n nodes, all at their defaults; tables_free() ends it.  -ENOMEM, or -errno. */
int tables_create(struct tables *t, const struct tables_shape *nodes, uint32_t n);
void tables_free(struct tables *t);

/*
 * Maps what another process has made, to be read; fd stays the caller's.  tables_free() ends it.
 * -EINVAL: they are not tables.
 */
int tables_map(struct tables *t, int fd);

/* Something that forwarding reads has changed: for the writer, after the change. */
void tables_changed(struct tables *t);

static inline bool tables_is_switch(const struct tables *t, uint32_t port)
{
	return t->nodes[t->ports[port].node].kind == TABLES_SWITCH;
}

/* The port whose LID and keys count at a port: a switch has one for all. */
static inline uint32_t tables_managed(const struct tables *t, uint32_t port)
{
	return tables_is_switch(t, port) ? t->nodes[t->ports[port].node].port0 : port;
}

static inline bool tables_owns_lid(const struct tables_port *p, uint16_t lid)
{
	uint16_t own = tables_load(&p->lid);
	uint8_t lmc = tables_load(&p->lmc);

	return own && lid >> lmc == own >> lmc;
}

/* Entry i < TABLES_PKEYS of a port's P_Key table; 0: none. */
uint16_t tables_pkey(const struct tables *t, uint32_t port, unsigned i);
void tables_set_pkey(struct tables *t, uint32_t port, unsigned i, uint16_t pkey);

/* Where a port's table has a key that goes with pkey (15 bits equal, not both limited); -1. */
int tables_find_pkey(const struct tables *t, uint32_t port, uint16_t pkey);

/*
 * Whether a switch's port that enforces P_Keys lets a packet with pkey pass: its table has one with
 * the same 15 bits.  That one of both ends is a full member is asked at the end alone.
 */
bool tables_lets_pkey(const struct tables *t, uint32_t port, uint16_t pkey);

/*
 * The VL of each SL, 4 bits each, SL 0 in the highest: the packet comes in at port `in` of the node
 * and leaves by `out`; in adapters `in` does not matter.
 */
uint64_t tables_sl2vl(const struct tables *t, uint32_t node, uint8_t in, uint8_t out);
void tables_set_sl2vl(struct tables *t, uint32_t node, uint8_t in, uint8_t out, uint64_t vls);

static inline uint8_t tables_vl(uint64_t vls, uint8_t sl)
{
	return vls >> (60 - 4 * (sl & 15)) & 15;
}

/* Of a switch; TABLES_NO_PORT: no way to that LID. */
static inline uint8_t tables_route(
	const struct tables *t, const struct tables_node *n, uint16_t lid)
{
	if (lid >= TABLES_LIDS || lid > tables_load(&n->lft_top))
		return TABLES_NO_PORT;
	return ~tables_load(&t->lft[n->lft + lid]);
}

/* Words of 16 ports in an entry of a multicast forwarding table. */
static inline unsigned tables_positions(uint8_t n_ports)
{
	return n_ports / 16 + 1;
}
