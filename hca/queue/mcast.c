// SPDX-License-Identifier: BSD-3-Clause
/* Multicast groups: who is in them.  datagram.c delivers to them. */
#include <errno.h>

#include "base/gid.h"
#include "base/log.h"
#include "hca/api/hca.h"
#include "hca/obj/qp.h"
#include "hca/proc/member.h"
#include "hca/proc/proc.h"
#include "hca/run/far_datagram.h"
#include "hca/run/path.h"

static int refuse(const struct hca_qp *qp, const char *why)
{
	log_refusal("multicast group of QP %#x refused: %s", qp->me.qpn, why);
	return -EINVAL;
}

static int check(const struct hca_qp *qp, const union ibv_gid *gid)
{
	if (qp->epoch != proc_epoch())
		return -EINVAL;
	if (qp->init.qp_type != IBV_QPT_UD)
		return refuse(qp, "it is not of type UD");
	return gid_is_multicast(gid->raw) ? 0 : refuse(qp, "the GID is not of a multicast group");
}

int hca_mcast_attach(struct hca_qp *qp, const union ibv_gid *gid)
{
	int rc = check(qp, gid);
	uint32_t index;

	if (rc)
		return rc;
	lock_take(&qp->modify_lock);
	if (member_find(MEMBER_MCAST, qp->me.qpn, gid->raw) < 0) {
		/* First, for once others see the member it has to get what they send. */
		far_datagram_join(gid->raw, true);
		rc = member_add(MEMBER_MCAST, qp->me.qpn, gid->raw, &index);
		if (rc)
			far_datagram_join(gid->raw, false);
	}
	lock_drop(&qp->modify_lock);
	return rc;
}

int hca_mcast_detach(struct hca_qp *qp, const union ibv_gid *gid)
{
	int rc = check(qp, gid);
	int64_t index;

	if (rc)
		return rc;
	lock_take(&qp->modify_lock);
	index = member_find(MEMBER_MCAST, qp->me.qpn, gid->raw);
	if (index >= 0) {
		far_datagram_join(gid->raw, false);
		member_del(index);
	}
	lock_drop(&qp->modify_lock);
	return index < 0 ? refuse(qp, "it is not in that group") : 0;
}
