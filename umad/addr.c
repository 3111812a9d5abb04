// SPDX-License-Identifier: BSD-3-Clause
// Parts of a MAD's header.  umad_set_grh_net() is in the public header alone: no version exports
// it.
#include "umad/umad.h"

#include "umad/io.h"

enum { HEADER_PKEY = 8 }; /* the index and what is reserved behind it */

size_t umad_size(void)
{
	return sizeof(struct ib_user_mad) - (io_has_pkey() ? 0 : HEADER_PKEY);
}

void *umad_get_mad(void *umad)
{
	return (char *)umad + umad_size();
}

int umad_status(void *umad)
{
	return ((struct ib_user_mad *)umad)->status;
}

ib_mad_addr_t *umad_get_mad_addr(void *umad)
{
	return &((struct ib_user_mad *)umad)->addr;
}

/* The flow label of *mad_addr is in host order, all that is written in network order. */
int umad_set_grh(void *umad, void *mad_addr)
{
	ib_mad_addr_t *to = umad_get_mad_addr(umad);
	const ib_mad_addr_t *from = mad_addr;

	to->grh_present = from != NULL;
	if (!from)
		return 0;
	to->ib_gid = from->ib_gid;
	to->flow_label = htobe32(from->flow_label);
	to->hop_limit = from->hop_limit;
	to->traffic_class = from->traffic_class;
	return 0;
}

int umad_set_pkey(void *umad, int pkey_index)
{
	if (io_has_pkey())
		umad_get_mad_addr(umad)->pkey_index = (uint16_t)pkey_index;
	return 0;
}

int umad_get_pkey(void *umad)
{
	return io_has_pkey() ? umad_get_mad_addr(umad)->pkey_index : 0;
}

int umad_set_addr_net(void *umad, __be16 dlid, __be32 dqp, int sl, __be32 qkey)
{
	ib_mad_addr_t *addr = umad_get_mad_addr(umad);

	addr->qpn = dqp;
	addr->qkey = qkey;
	addr->lid = dlid;
	addr->sl = (uint8_t)sl;
	return 0;
}

int umad_set_addr(void *umad, int dlid, int dqp, int sl, int qkey)
{
	return umad_set_addr_net(umad, htobe16(dlid), htobe32(dqp), sl, htobe32(qkey));
}
