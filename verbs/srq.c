// SPDX-License-Identifier: BSD-3-Clause
// Shared receive queues: not there yet.
#include "verbs/context.h"

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	(void)pd, (void)init;
	return fail_null(EOPNOTSUPP);
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int attr_mask)
{
	(void)srq, (void)attr, (void)attr_mask;
	return to_errno(-EOPNOTSUPP);
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	(void)srq, (void)attr;
	return to_errno(-EOPNOTSUPP);
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	(void)srq;
	return to_errno(-EOPNOTSUPP);
}

int verbs_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)srq;
	*bad = wr;
	return to_errno(-EOPNOTSUPP);
}
