/* SPDX-License-Identifier: BSD-3-Clause */
/* What the public interface of librdmacm got after version 44 of rdma-core. */
#pragma once

#include <sys/epoll.h>

#include "rdmacm/rdmacm.h"

/* enum rdma_cm_event_type, continued */
enum {
	RDMA_CM_EVENT_ADDRINFO_RESOLVED = 16,
	RDMA_CM_EVENT_ADDRINFO_ERROR,
	RDMA_CM_EVENT_USER,
	RDMA_CM_EVENT_INTERNAL,
};

/* rdma_addrinfo.ai_flags, continued: where to look; by default in the DNS. */
enum {
	RAI_SA = 0x10,
	RAI_DNS = 0x20,
};

#pragma GCC visibility push(default)

/* ---- RDMACM_1.4 ---- */

/*
 * Looks addresses up; blocks as long as getaddrinfo(3) does.  The outcome is an event of id,
 * ADDRINFO_RESOLVED or ADDRINFO_ERROR.  -1 with errno: EINVAL; EOPNOTSUPP with RAI_SA.
 */
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
	const struct rdma_addrinfo *hints);
/* A copy of what was found last, for rdma_freeaddrinfo().  -1 with errno ENODATA, ENOMEM. */
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
/*
 * Puts an event of the program's own into the id's channel: RDMA_CM_EVENT_USER or _INTERNAL, with
 * that status, and arg as its first parameter.  -1 with errno EINVAL, ENOMEM.
 */
int rdma_write_cm_event(
	struct rdma_cm_id *id, enum rdma_cm_event_type event, int status, uint64_t arg);

/* ---- RDMACM_1.5: of rsockets; each fails with EOPNOTSUPP ---- */

int repoll_create(void);
int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int repoll_wait(int epfd, struct epoll_event *events, int n, int timeout);

#pragma GCC visibility pop
