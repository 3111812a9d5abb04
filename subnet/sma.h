/* SPDX-License-Identifier: BSD-3-Clause */
/* The subnet management agent of all nodes: M_Keys, and which attribute is whose. */
#pragma once

#include "subnet/carry.h"

/* A Get or Set in work. */
struct sma {
	struct subnet *s;
	uint32_t node;
	uint32_t port;  /* managed: of a switch its port 0 */
	uint8_t in;     /* by which it came */
	bool knows_key; /* the M_Key was right, or there is none */
	bool reregister;
	struct smp_hdr h;
	uint8_t *data; /* SMP_DATA_SIZE bytes */
};

/* Each gives an enum smp_status.  get fills data, which is zeroed; set reads it and changes all
 * that it says, or nothing. */
struct sma_attr {
	uint16_t attr;
	uint16_t (*get)(struct sma *c);
	uint16_t (*set)(struct sma *c); /* NULL: there is none */
};

/* A MAD on QP0 has arrived. */
enum agent_said sma_handle(struct subnet *s, struct flight *f);
