/* SPDX-License-Identifier: BSD-3-Clause */
/* Running the two directions of a QP of ours. */
#pragma once

#include "hca/exec/exec.h"
#include "hca/obj/srq.h"

/* What a thread does for a peer, or for a QP that waited, before it goes on with its own. */
extern const struct budget help_budget;

/* Runs our own direction, or the one towards us, as far as it goes now. */
void qp_run_out(struct hca_qp *qp);
void qp_run_in(struct hca_qp *qp);

/* As qp_run_in(), by the agent, whom the peer asked. */
void qp_run_handed(struct exec *x, struct hca_qp *qp);

/* After a run of our direction of qp that ended so: has it watched if it waits for something. */
void qp_watch_after(struct hca_qp *qp, enum run_end end);

/*
 * Our QP takes no requests any more (RESET, ERR, gone): a request of its peer that waits for a
 * receive here learns of it, and waits for an acknowledgement instead, as on a wire.
 */
void qp_rouse_peer(struct hca_qp *qp);
