// SPDX-License-Identifier: BSD-3-Clause
// Memory windows: not there yet.
#include "verbs/context.h"

struct ibv_mw *verbs_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	(void)pd, (void)type;
	return fail_null(EOPNOTSUPP);
}

int verbs_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	(void)qp, (void)mw, (void)bind;
	return to_errno(-EOPNOTSUPP);
}

int verbs_dealloc_mw(struct ibv_mw *mw)
{
	(void)mw;
	return to_errno(-EOPNOTSUPP);
}
