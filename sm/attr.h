/* SPDX-License-Identifier: BSD-3-Clause */
/* What the subnet manager reads and writes: attributes at a node's own agent, without a MAD's way.
 */
#pragma once

#include "subnet/subnet.h"
#include "wire/smp.h"

/*
 * Get of an attribute at a port (of a switch: 0; another one stands in the modifier), and Set,
 * after which data is what came of it.  False: there is no such port, or the agent did not like it.
 */
bool attr_get(struct subnet *s, uint32_t node, uint8_t port, uint16_t attr, uint32_t mod,
	uint8_t data[SMP_DATA_SIZE]);
bool attr_set(struct subnet *s, uint32_t node, uint8_t port, uint16_t attr, uint32_t mod,
	uint8_t data[SMP_DATA_SIZE]);
