/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding the other end of a QP of ours, and letting go of it. */
#pragma once

#include "hca/obj/qp.h"

/* Makes sure that we can write the eventfds of e's CQs without asking weftd then. */
int qp_prepare_channels(struct peer *process, const struct end *e);

/* Looks for the other end if it is missing; rate limited. */
void qp_find_peer(struct hca_qp *qp);

/*
 * The same on the way to RTR: a weftd that has just started does not know all processes yet, so
 * one that is not found is looked for a while, at most about 60 ms.
 */
void qp_await_peer(struct hca_qp *qp);

/*
 * If the process of the other end is dead, frees what it held of qp and true; for where weftd,
 * which does the same, may be down.  Then our direction must be run (again).
 */
bool qp_bury_peer(struct hca_qp *qp);

/* Lets go of the other end; only after qp_stop(). */
void qp_forget_peer(struct hca_qp *qp);
