/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A topology as it was described: nodes, their ports, and which port is wired to which.  What a
 * file says (topo/netlist.h) or a generator makes (topo/generate.h); nothing of it changes by
 * MADs.  Nodes are numbered in the order of weft run --node: Hca records in file order from 0, then
 * switches and routers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum topo_kind { TOPO_CA = 1, TOPO_SWITCH = 2, TOPO_ROUTER = 3 }; /* NodeInfo's NodeType */

enum { TOPO_NONE = UINT32_MAX, TOPO_MAX_PORTS = 254 };

/* Masks of all that a port may do; what each bit is say the members of struct topo_port. */
enum { TOPO_WIDTHS = 31, TOPO_SPEEDS = 15, TOPO_EXT_SPEEDS = 1 | 2 | 4 | 8 | 32 };
enum { TOPO_QDR = 4, TOPO_FDR10 = 8 };

struct topo_port {
	uint64_t guid; /* of an adapter's port; of a switch: its node's, for port 0 */
	uint32_t peer; /* number of the node at the other end, TOPO_NONE: not wired */
	uint8_t peer_port;
	uint8_t lmc;
	uint16_t lid;      /* that the file asks for; 0: none */
	uint8_t width;     /* LinkWidthSupported, a mask: 1 1x, 2 4x, 4 8x, 8 12x, 16 2x */
	uint8_t speed;     /* a mask: 1 SDR, 2 DDR, 4 QDR: LinkSpeedSupported; 8 FDR10, with QDR */
	uint8_t ext_speed; /* a mask: 1 FDR, 2 EDR, 4 HDR, 8 NDR: LinkSpeedExtSupported; 32 XDR */
};

struct topo_node {
	enum topo_kind kind;
	bool enhanced;   /* of a switch: its port 0 is enhanced */
	uint8_t n_ports; /* external ones, 1 to n_ports; a switch has port 0, too */
	uint32_t vendor, device;
	char *id;          /* as the file names it, unique */
	char *description; /* NodeDescription, at most 64 bytes */
	uint64_t guid, system_guid;
	struct topo_port *ports; /* n_ports + 1; [0] of a switch alone */
};

/* Another name of a port. */
struct topo_alias {
	char *name; /* with its '@', and the prefix of its module before that */
	uint32_t node;
	uint8_t port;
};

struct topo {
	struct topo_node *nodes;
	uint32_t n_nodes;
	uint32_t n_cas; /* nodes [0, n_cas) are adapters */
	uint32_t n_aliases;
	struct topo_alias *aliases;
};

/* Frees all that it has; it is as zeroed. */
void topo_free(struct topo *t);

/* The node of that id, description, GUID (0x...) or number; TOPO_NONE. */
uint32_t topo_find(const struct topo *t, const char *name);

/* The port of that alias; NULL. */
const struct topo_alias *topo_find_alias(const struct topo *t, const char *name);
