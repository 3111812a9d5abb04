/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections by address for test programs, over the public librdmacm alone. */
#pragma once

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum { CM_WAIT_MS = 20000 };

/* 127.0.0.1 and ::1 with a port in host order; valid until the next call. */
struct sockaddr *cm_addr4(uint16_t port);
struct sockaddr *cm_addr6(uint16_t port);

/* True if an event comes within ms. */
bool cm_readable(struct rdma_event_channel *ch, int ms);

/* Takes the next event, which must be of that type; ends the program if none comes. */
struct rdma_cm_event *cm_take(struct rdma_event_channel *ch, enum rdma_cm_event_type want);
/* The same and acknowledges it; its status. */
int cm_expect(struct rdma_event_channel *ch, enum rdma_cm_event_type want);

struct rdma_event_channel *cm_channel(void);
struct rdma_cm_id *cm_id(struct rdma_event_channel *ch);

/* An id that listens at a port of the kernel's choice, 127.0.0.1; its port. */
struct rdma_cm_id *cm_listener(struct rdma_event_channel *ch, int backlog, uint16_t *port);

/* An id with resolved address and route, and a QP if wanted. */
struct rdma_cm_id *cm_resolved(struct rdma_event_channel *ch, struct sockaddr *to, bool qp);
void cm_make_qp(struct rdma_cm_id *id);

/* A connection within this process: listener's requests come to pch, the rest to ach. */
struct cm_conn {
	struct rdma_cm_id *active, *passive;
};
struct cm_conn cm_connect(
	struct rdma_event_channel *ach, struct rdma_event_channel *pch, uint16_t port, bool qp);
void cm_end(struct rdma_cm_id *id);
