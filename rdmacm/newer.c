// SPDX-License-Identifier: BSD-3-Clause
/* Functions of rdma-core after version 44 that are not there, so that its programs load. */
#include "rdmacm/newer.h"

int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
	const struct rdma_addrinfo *hints)
{
	(void)id, (void)node, (void)service, (void)hints;
	return fail(EOPNOTSUPP);
}

int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info)
{
	(void)id, (void)info;
	return fail(EOPNOTSUPP);
}

int rdma_write_cm_event(
	struct rdma_cm_id *id, enum rdma_cm_event_type event, int status, uint64_t arg)
{
	(void)id, (void)event, (void)status, (void)arg;
	return fail(EOPNOTSUPP);
}

int repoll_create(void)
{
	return fail(EOPNOTSUPP);
}

int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	(void)epfd, (void)op, (void)fd, (void)event;
	return fail(EOPNOTSUPP);
}

int repoll_wait(int epfd, struct epoll_event *events, int n, int timeout)
{
	(void)epfd, (void)events, (void)n, (void)timeout;
	return fail(EOPNOTSUPP);
}
