/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making a topology, for who reads a file and for who generates one.  Nodes are numbered as they
 * are added, of whatever kind; topo_build_end() gives them their final numbers.
 *
 * GUIDs that nobody chose are those that ibsim gives: adapters count from 0x100000 in steps of
 * their ports and one, a port has its node's plus its number; switches count from 0x200000.
 * Routers are as adapters, from 0x300000.
 */
#pragma once

#include "topo/topo.h"

enum {
	TOPO_ERROR = 512,          /* room for a message, one line without its end */
	TOPO_TEXT_MAX = 64,        /* bytes of an id, and of a description */
	TOPO_UNICAST_LIDS = 0xbfff /* LIDs 1 to this one; no more nodes than this */
};

/* What a port may do, as masks of PortInfo. */
struct topo_caps {
	uint8_t width, speed, ext_speed;
};

/* A port that has FDR10 has QDR, too: PortInfo calls the link so. */
static inline uint8_t topo_speeds(uint8_t mask)
{
	return mask & TOPO_FDR10 ? mask | TOPO_QDR : mask;
}

struct topo_guids {
	uint64_t base, next;
};

struct topo_build {
	struct topo topo;
	uint32_t room;
	struct topo_guids guids[TOPO_ROUTER + 1]; /* by kind: of the next nodes */
	struct topo_caps caps;                    /* of the next nodes' ports */
	uint64_t system_guid;                     /* of the next node; 0: its own */
	uint32_t vendor, device;                  /* of the next node */
};

/* An empty one; 4x SDR ports, as ibsim's. */
void topo_build_begin(struct topo_build *b);

/*
 * Adds a node with n_ports ports, 1 to TOPO_MAX_PORTS, none of them wired; both texts are copied,
 * an empty description is the id.  Its number in *n.  0, -ENOMEM, -ENOSPC: too many nodes.
 */
int topo_build_node(struct topo_build *b, enum topo_kind kind, unsigned n_ports, const char *id,
	const char *description, uint32_t *n);

/* Wires two ports, neither of which is. */
void topo_build_wire(
	struct topo_build *b, uint32_t a, unsigned a_port, uint32_t c, unsigned c_port);

/* Numbers the nodes as struct topo has them and moves all to *out; b is empty.  0 or -ENOMEM. */
int topo_build_end(struct topo_build *b, struct topo *out);

/* Frees what was added. */
void topo_build_drop(struct topo_build *b);
