/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completing work requests and receives of a QP, raising async events, and a QP that fails: the
 * parts of execution that touch only segments.  Runs in the owner, in a local peer and in weftd
 * alike.
 */
#pragma once

#include "hca/exec/announce.h"

/* How a work request ended. */
struct outcome {
	uint8_t status; /* enum ibv_wc_status */
	uint32_t byte_len;
	uint32_t vendor_err;
};

/*
 * Completes the request at the head of e's send queue and moves the head.  The caller holds e's
 * token.
 */
void complete_send(struct exec *x, const struct end *e, uint32_t pos, const struct outcome *o);

/*
 * For a request whose completion a dead executor wrote but perhaps did not announce: announces
 * it (a surplus ticket is harmless) and moves the head.  The caller holds e's token.
 */
void complete_send_again(struct exec *x, const struct end *e, uint32_t pos);

/* The same for a receive; the caller holds e's rq_token. */
void complete_recv_again(struct exec *x, const struct end *e, uint32_t pos);

/* What a receive completion carries beside the outcome. */
struct received {
	uint8_t opcode; /* enum ibv_wc_opcode */
	uint8_t wc_flags;
	uint8_t where; /* enum seg_rq_where; the payload is in place already */
	bool solicited;
	bool rendezvous; /* the receive completes twice */
	uint8_t sl;
	uint32_t imm, src_qp, ring_pos;
};

/* Completes the receive at e's rq_head and moves the head.  The caller holds e's rq_token. */
void complete_recv(struct exec *x, const struct end *e, uint32_t pos, const struct outcome *o,
	const struct received *r);

/* Announces, on e's receive CQ, an operation of its owner that completed. */
void complete_note(struct exec *x, const struct end *e);

/* Marks an async event of e's QP and wakes its process if it is new. */
void raise_qp_event(struct exec *x, const struct end *e, enum ibv_event_type type);

/* The same of entry index of process v, a QP or an SRQ. */
void raise_event(struct exec *x, const struct view *v, uint32_t index, enum ibv_event_type type);

/* Does an async event wait for the process? */
bool has_async_event(const struct seg *seg);

/*
 * A request of e's own has failed: UC and UD go to SQE, from which they may come back, all others
 * to ERR.
 */
void qp_set_send_error(const struct end *e);

/* Moves e's QP to ERR if it is in a state from which that is possible.  True if it was. */
bool qp_set_error(const struct end *e);
