// SPDX-License-Identifier: BSD-3-Clause
// Memory windows.
#include "verbs/context.h"

#include <stdlib.h>

struct ibv_mw *verbs_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct verbs_mw *mw = calloc(1, sizeof(*mw));
	int rc;

	if (!mw)
		return fail_null(ENOMEM);
	rc = hca_mw_alloc(to_pd(pd)->hca, type, &mw->hca);
	if (rc) {
		free(mw);
		return fail_null(rc);
	}
	count_domain_user(pd, 1);
	mw->mw = (struct ibv_mw){.context = pd->context,
		.pd = pd,
		.rkey = hca_mw_key(mw->hca),
		.handle = hca_mw_key(mw->hca) >> 8,
		.type = type};
	return &mw->mw;
}

int verbs_dealloc_mw(struct ibv_mw *mw)
{
	int rc = hca_mw_dealloc(container_of(mw, struct verbs_mw, mw)->hca);

	if (rc)
		return to_errno(rc);
	count_domain_user(mw->pd, -1);
	free(container_of(mw, struct verbs_mw, mw));
	return 0;
}

/* For type 1 windows; the inline verb has checked type and PD.  The key changes at once. */
int verbs_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr *bad, wr = {.wr_id = bind->wr_id, .opcode = IBV_WR_BIND_MW};
	int rc;

	wr.send_flags = bind->send_flags;
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = bind->bind_info;
	rc = hca_post_send(to_qp(qp)->hca, &wr, &bad);
	if (rc)
		return to_errno(rc);
	mw->rkey = wr.bind_mw.rkey;
	return 0;
}
