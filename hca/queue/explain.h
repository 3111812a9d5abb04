/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log in words, at level info: why a request completed in error, or was not taken.  For each
 * queue pair and status there is one line, and then a count.  Called where something has failed
 * already, by the process whose queue pair it is: who carried the request out, which may have been
 * its peer, leaves no text.  So what is said of keys and states is what they are when the program
 * polls.  None blocks.
 */
#pragma once

#include "hca/obj/cq.h"
#include "hca/obj/srq.h"

/* A request of the send queue has completed in error; w is its slot. */
void explain_send(struct hca_qp *qp, const struct seg_wqe *w);

/* So has a receive; qp may be NULL, which says nothing. */
void explain_recv(struct hca_qp *qp, const struct ibv_wc *wc);

/* The same where another thread may be destroying the queue pair, which wc alone names. */
void explain_rxq(const struct ibv_wc *wc);

/*
 * Says what a peer did that moved qp to ERR, once, if who carried that out has left it in our
 * segment (struct seg_fault).  qp may be NULL.
 */
void explain_fault(struct hca_qp *qp);

/* The same of the queue pair of that index, which another thread may be destroying. */
void explain_event(uint32_t index);

/* cq had no room for a completion, and is lost: told once. */
void explain_overrun(struct hca_cq *cq);

/* wr, which is -errno rc, was not taken by ibv_post_send() or ibv_wr_*(). */
void explain_post_send(struct hca_qp *qp, const struct ibv_send_wr *wr, int rc);
void explain_post_recv(struct hca_qp *qp, const struct ibv_recv_wr *wr, int rc);

/* The queue pair goes, or begins anew: what is left to tell. */
void explain_end(struct hca_qp *qp);
