/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small subnet to test:
 *
 *   H0 1 ---- 1 S0 2 ---- 2 S1 1 ---- 1 H1
 *   H0 2 ------------------ 3 S1
 *
 * H0 has two ports; switches have four.  The link between the switches can do XDR, FDR
 * and FDR10, H1's FDR10.  Nodes are numbered H0, H1, S0, S1.
 */
#pragma once

#include "subnet/subnet.h"
#include "wire/notice.h"
#include "wire/smp.h"

enum { H0, H1, S0, S1, WORLD_NODES };
enum { LID_H0 = 1, LID_H1 = 2, LID_S0 = 3, LID_S1 = 4, LID_H0_2 = 5, LID_NOWHERE = 6 };
enum { WORLD_GOT = 16 };

struct got {
	uint32_t node;
	uint8_t port;
	unsigned qp;
	struct mad_addr from;
	uint8_t mad[MAD_SIZE];
};

struct world {
	struct subnet *s;
	uint64_t now;
	bool nobody; /* no program takes anything */
	unsigned n_got;
	struct got got[WORLD_GOT]; /* the first ones */
	unsigned events[WORLD_NODES][5];
};

/* Links are up, in state INIT; no LIDs. */
void world_begin(struct world *w);
void world_end(struct world *w);
/* The same as cmocka wants it: *state is the world. */
int world_set_up(void **state);
int world_tear_down(void **state);

/* LIDs, tables and states as an SM would leave them; the SM is at H0, port 1.  Nothing got. */
void world_up(struct world *w);

/* A request at port `port` of a node, by its agent alone; its status.  data may be NULL. */
int world_local(struct world *w, uint32_t node, uint8_t port, uint8_t method, uint16_t attr,
	uint32_t mod, uint8_t data[SMP_DATA_SIZE]);

/* PortInfo: gets it, or sets it and gets what came of it; the status. */
int world_get_port(struct world *w, uint32_t node, uint8_t port, struct port_info *i);
int world_set_port(struct world *w, uint32_t node, uint8_t port, struct port_info *i);

/* An SMP with that header from H0, port 1, with the path and data of mad; how many MADs came. */
unsigned world_smp(struct world *w, const struct smp_hdr *h, uint16_t dlid, uint8_t mad[MAD_SIZE]);

/* The header of what came last. */
struct smp_hdr world_last(const struct world *w);

/* A request for PortInfo from H0 to H1 with an M_Key; its status, -1: no answer. */
int world_keyed(struct world *w, uint8_t method, uint64_t mkey, struct port_info *i);
