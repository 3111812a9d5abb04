/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread that acts for a process between its calls: takes events of the CM and of completion
 * channels, and notices fds that the program closed.  It starts with the first endpoint.
 */
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>

struct scif_ep;

/* Starts the thread if it does not run.  -errno. */
int service_start(void);
/* Starts another one, detached, which no signal disturbs.  -errno. */
int service_thread(void *(*fn)(void *arg), void *arg);
/* The channel of all ids. */
struct rdma_event_channel *service_cm(void);
/* The channel of all completion queues of that context; NULL and errno. */
struct ibv_comp_channel *service_channel(struct ibv_context *verbs);
/* Watches for the end of an endpoint's fd. */
int service_watch(struct scif_ep *ep);
/* Has the thread look at times anew: somebody connects. */
void service_kick(void);
/* Around fork(): nobody starts the thread meanwhile, and the child has none. */
void service_before_fork(void);
void service_parent_forked(void);
void service_child_forked(void);
/* Watches for questions by a socket to a child; between the first two.  -errno. */
int service_watch_heir(int sock);
