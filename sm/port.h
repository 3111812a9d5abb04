/* SPDX-License-Identifier: BSD-3-Clause */
/* What the subnet manager does to one port; ports are numbered as in struct tables. */
#pragma once

#include "subnet/subnet.h"
#include "wire/smp.h"

/* Its number on its node. */
uint8_t port_number(const struct tables *t, uint32_t port);

/* Whether it has a LID of its own: of a switch port 0 alone. */
bool port_is_managed(const struct tables *t, uint32_t port);

/* The GUID of a port that has a LID of its own. */
uint64_t port_guid(struct subnet *s, const struct tables *t, uint32_t port);

/*
 * LID and LMC, the SM's LID, no M_Key, SubnetTimeOut; MTU and VLs that both ends have; P_Key 0xffff
 * alone, not enforced at switches; each SL on the VL of its number modulo their count; a link in
 * state INIT becomes ARMED.  Writes what is otherwise; returns how many attributes that were.
 */
unsigned port_configure(struct subnet *s, const struct tables *t, uint32_t port, uint16_t lid,
	uint8_t lmc, uint16_t sm_lid);

/* From ARMED to ACTIVE; reregister: ClientReregister, too.  Returns as above. */
unsigned port_activate(struct subnet *s, const struct tables *t, uint32_t port, bool reregister);
