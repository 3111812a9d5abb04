// SPDX-License-Identifier: BSD-3-Clause
/* Functions of rdma-core after version 44 that are not there, so that its programs load. */
#include "rdmacm/newer.h"

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
