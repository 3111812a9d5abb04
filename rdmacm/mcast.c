// SPDX-License-Identifier: BSD-3-Clause
/* Multicast waits for UD queue pairs. */
#include "rdmacm/rdmacm.h"

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	(void)id, (void)addr, (void)context;
	return fail(EOPNOTSUPP);
}

int rdma_join_multicast_ex(
	struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr, void *context)
{
	(void)id, (void)attr, (void)context;
	return fail(EOPNOTSUPP);
}

int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	(void)id, (void)addr;
	return fail(EADDRNOTAVAIL);
}
