// SPDX-License-Identifier: BSD-3-Clause
// Multicast groups.  A RoCE group has no LID: that argument means nothing.
#include "verbs/objects.h"

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid;
	return to_errno(hca_mcast_attach(to_qp(qp)->hca, gid));
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid;
	return to_errno(hca_mcast_detach(to_qp(qp)->hca, gid));
}
