/* SPDX-License-Identifier: BSD-3-Clause */
/* Public functions of rdma-core after version 44; each fails with EOPNOTSUPP. */
#pragma once

#include <sys/epoll.h>

#include "rdmacm/rdmacm.h"

#pragma GCC visibility push(default)

/* RDMACM_1.4 */
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
	const struct rdma_addrinfo *hints);
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
int rdma_write_cm_event(
	struct rdma_cm_id *id, enum rdma_cm_event_type event, int status, uint64_t arg);

/* RDMACM_1.5 */
int repoll_create(void);
int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int repoll_wait(int epfd, struct epoll_event *events, int n, int timeout);

#pragma GCC visibility pop
