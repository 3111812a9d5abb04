/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The subnet management interface: where an SMP with a directed route goes from a node (IBA volume
 * 1, 14.2.2, C14-9 and C14-13).  Pure functions.
 */
#pragma once

#include <stdbool.h>

#include "wire/smp.h"

enum smi_where {
	SMI_DROP, /* it breaks a rule */
	SMI_HERE, /* its directed part is over, and so is its way */
	SMI_PORT, /* out by a port */
	SMI_LID,  /* on by forwarding tables: the route is a combined one */
};

struct smi_step {
	enum smi_where where;
	uint8_t port;
	uint16_t lid;
};

/*
 * The next step, with hop pointer and return path in mad brought up to date.  It came in by port
 * `in`, or begins here, at that port (own).
 */
struct smi_step smi_step(uint8_t mad[MAD_SIZE], bool is_switch, uint8_t in, bool own);

/* Does it begin with its directed part?  Else it goes by LID to where that begins. */
bool smi_begins_directed(const uint8_t mad[MAD_SIZE]);
