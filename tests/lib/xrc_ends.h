/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC for test programs, over the public verbs alone.  What cannot be made ends the program. */
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

/* ibv_open_xrcd() by that file, -1: anonymous; NULL and errno as it. */
struct ibv_xrcd *xrc_domain(struct ibv_context *ctx, int fd, int oflags);
/* A shared receive queue of 16 receives in that domain. */
struct ibv_srq *xrc_srq(struct ibv_pd *pd, struct ibv_xrcd *xrcd, struct ibv_cq *cq);
/* A QP that sends. */
struct ibv_qp *xrc_initiator(struct ibv_pd *pd, struct ibv_cq *cq);
/* One that takes what comes for the domain's queues. */
struct ibv_qp *xrc_target(struct ibv_xrcd *xrcd);
/* INIT, checked, and RTR, whose answer it returns, of either; to the other kind of QP there. */
int xrc_ready(struct ibv_qp *qp, uint32_t to, const union ibv_gid *gid);
/* INIT, RTR and RTS, checked, of either; to the other kind of QP there. */
void xrc_connect(struct ibv_qp *qp, uint32_t to, const union ibv_gid *gid);
