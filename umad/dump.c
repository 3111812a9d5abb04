// SPDX-License-Identifier: BSD-3-Clause
// The header of a MAD as text.
#include "umad/umad.h"

#include <stdio.h>

#include "umad/debug.h"

void umad_addr_dump(ib_mad_addr_t *addr)
{
	char gid[2 * sizeof addr->gid + 1];

	for (size_t i = 0; i < sizeof addr->gid; i++)
		snprintf(gid + 2 * i, 3, "%02x", addr->gid[i]);
	debug_say(__func__,
		"qpn %d qkey 0x%x lid %u sl %d\n"
		"grh_present %d gid_index %d hop_limit %d traffic_class %d flow_label 0x%x "
		"pkey_index 0x%x\n"
		"Gid 0x%s",
		be32toh(addr->qpn), be32toh(addr->qkey), be16toh(addr->lid), addr->sl,
		addr->grh_present, addr->gid_index, addr->hop_limit, addr->traffic_class,
		addr->flow_label, addr->pkey_index, gid);
}

void umad_dump(void *umad)
{
	struct ib_user_mad *mad = umad;

	debug_say(__func__, "agent id %d status %x timeout %d", mad->agent_id, mad->status,
		mad->timeout_ms);
	umad_addr_dump(&mad->addr);
}
