/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fabric page: what weftd tells every process about the node it works on, an HCA with one port
 * or two.  A small memfd for each node, written by weftd alone under a sequence lock, mapped
 * read-only by clients.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"

enum { FABRIC_MAX_PORTS = 2, FABRIC_MAX_GIDS = 256, FABRIC_MAX_PKEYS = 128 };

/* The bits of a port's capability mask that are ours: PortInfo:CapabilityMask. */
enum { PORT_CAP_IS_SM = 1 << 1, PORT_CAP_CM = 1 << 16 };

/* Speeds of one lane, as programs get them: codes of PortInfo's four fields in a row. */
enum { PORT_SPEED_FDR10 = 8, PORT_SPEED_FDR = 16, PORT_SPEED_NDR = 128, PORT_SPEED_XDR = 256 };

struct fabric_gid {
	uint8_t raw[16];  /* network order; all zero: no entry */
	uint32_t ifindex; /* of the interface that has the address */
	uint32_t type;    /* enum ibv_gid_type: 2 = RoCE v2 */
	char ifname[16];
};

struct fabric_port {
	uint8_t state;      /* enum ibv_port_state */
	uint8_t phys_state; /* 5 = LinkUp, 3 = Disabled */
	uint8_t max_mtu;    /* enum ibv_mtu */
	uint8_t active_mtu;
	uint8_t link_layer;   /* IBV_LINK_LAYER_ETHERNET or _INFINIBAND */
	uint8_t active_width; /* as ibv_port_attr */
	uint8_t lmc;          /* this many low bits of the LID choose a path */
	uint8_t sm_sl;
	uint16_t lid, sm_lid;
	uint8_t subnet_timeout; /* 4.096 us << this */
	uint8_t vl_cap;         /* PortInfo:VLCap: 1 VL0 alone, 2 to VL1, 3 to VL3, 4 to VL7 */
	uint16_t active_speed;  /* as newer ibv_port_attr.active_speed_ex; PORT_SPEED_* */
	uint32_t cap_mask;      /* PORT_CAP_* */
	uint32_t cap_mask2;
	uint32_t n_gids; /* entries in use and gaps below the last one */
	uint32_t n_pkeys;
	struct fabric_gid gid[FABRIC_MAX_GIDS];
	uint16_t pkey[FABRIC_MAX_PKEYS];
};

struct fabric_page {
	_Atomic uint32_t seq; /* odd while weftd writes; begins anywhere, for each page elsewhere */
	uint32_t version;     /* 4 */
	char fabric[64];      /* name */
	char device[64];      /* "weft0" */
	uint64_t node_guid;   /* network order, as ibv_get_device_guid gives it */
	uint64_t sys_image_guid;
	uint32_t n_ports;   /* never another */
	uint32_t node_type; /* NodeInfo's: 1 adapter, 2 switch, which has port 0 alone, 3 router */
	char description[72]; /* NodeDescription, up to 64 bytes; empty: this host's name */
	/* Not under seq: */
	_Atomic uint32_t left; /* 1 once weftd has ended in good order */
	uint32_t pad;
	_Atomic uint64_t restarted_ns; /* CLOCK_MONOTONIC; 0: it is the first of its directory */
	/* Under seq: */
	struct fabric_port port[FABRIC_MAX_PORTS]; /* in order; see fabric_port() */
};

/* Of its memfd. */
enum { FABRIC_PAGE_BYTES = (sizeof(struct fabric_page) + 4095) & ~4095ul };

enum { FABRIC_CA = 1, FABRIC_SWITCH = 2, FABRIC_ROUTER = 3 }; /* node_type */

/* The number of its first port: the others follow. */
static inline uint32_t fabric_first_port(const struct fabric_page *page)
{
	return page->node_type != FABRIC_SWITCH;
}

/* The port of that number, of a page or a copy of one; NULL: it has none. */
static inline const struct fabric_port *fabric_port(const struct fabric_page *page, uint32_t number)
{
	uint32_t i = number - fabric_first_port(page);

	return i < FABRIC_MAX_PORTS && i < page->n_ports ? &page->port[i] : NULL;
}

/*
 * Copies the page consistently into *out.  Retries while weftd writes; if weftd died in the
 * middle of a write, gives what is there after a bounded number of tries.
 */
void fabric_read(const struct fabric_page *page, struct fabric_page *out);

/* The same without its ports: *out keeps there what it had. */
void fabric_read_node(const struct fabric_page *page, struct fabric_page *out);

/* The same for one port.  -EINVAL: the page has none of that number. */
int fabric_read_port(const struct fabric_page *page, uint32_t number, struct fabric_port *out);
