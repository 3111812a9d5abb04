/* SPDX-License-Identifier: BSD-3-Clause */
/* A MAD on its way from port to port. */
#pragma once

#include "subnet/state.h"

enum { CARRY_HOPS = 64, WORDS_MAD = 72, WORDS_GRH = 10 }; /* LRH to ICRC; 4 bytes each */

struct flight {
	uint32_t at;   /* the port where it is; of a switch: by which it came, or its port 0 */
	uint32_t node; /* of that port */
	bool gmp;      /* QP1, else QP0 on VL15 */
	bool own;      /* it has not left its first node yet */
	uint8_t sl;
	uint16_t slid, dlid, pkey;
	uint32_t qpn, src_qpn, qkey;
	unsigned hops;
	bool has_grh;
	struct mad_grh grh; /* local: its sender's */
	uint8_t *mad;       /* changed on its way */
};

/* What an agent of the subnet's own says of a MAD that has arrived. */
enum agent_said {
	AGENT_NOT_MINE, /* it is for the programs there */
	AGENT_ANSWERED, /* f->mad is the response */
	AGENT_TAKEN,    /* it needs none */
	AGENT_BAD_MKEY, /* dropped */
};

/* A MAD from queue pair 0 of a port, LID to LID; what carry_out() needs besides is as zeroed. */
struct flight carry_smp(struct subnet *s, uint32_t port, uint16_t dlid, uint8_t *mad);

/* Carries it from where it is to its end, and the answer of an agent there back. */
void carry_out(struct subnet *s, struct flight *f);
