// SPDX-License-Identifier: BSD-3-Clause
// Enhanced connection establishment: which options of ours both ends agree on.  There are none
// yet, so what is agreed on is nothing, between two of us.
#include "verbs/objects.h"

enum { OUR_VENDOR = 0xffffff, OUR_OPTIONS = 0 };

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	*ece = (struct ibv_ece){.vendor_id = OUR_VENDOR, .options = OUR_OPTIONS};
	return 0;
}

/* Options that we do not have are left out of what the program gets back. */
int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	enum ibv_qp_state state = hca_qp_state(to_qp(qp)->hca);

	if (!ece->vendor_id)
		return to_errno(-EOPNOTSUPP);
	if (ece->vendor_id != OUR_VENDOR || ece->comp_mask)
		return to_errno(-EINVAL);
	if (state != IBV_QPS_RESET && state != IBV_QPS_INIT)
		return to_errno(-EINVAL);
	ece->options &= OUR_OPTIONS;
	return 0;
}
