// SPDX-License-Identifier: BSD-3-Clause
// Multicast groups: not there yet.
#include "verbs/objects.h"

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp, (void)gid, (void)lid;
	return to_errno(-EOPNOTSUPP);
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp, (void)gid, (void)lid;
	return to_errno(-EOPNOTSUPP);
}
