/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the QP share among themselves. */
#pragma once

#include "hca/exec/exec.h"
#include "hca/obj/objects.h"

/*
 * Takes the QP out of service: writes the state word, waits until nobody uses it any more, and
 * drops its completions.  The modify lock is held.
 */
void qp_stop(struct hca_qp *qp, uint32_t new_state);

/*
 * Our QP takes no requests any more (RESET, ERR, gone): a request of its peer that waits for a
 * receive here learns of it, and waits for an acknowledgement instead, as on a wire.
 */
void qp_rouse_peer(struct hca_qp *qp);

/* Lets go of the other end; only after qp_stop(). */
void qp_forget_peer(struct hca_qp *qp);

/*
 * The attributes that a transition of this QP type takes: 0 and the two masks (enum
 * ibv_qp_attr_mask, without IBV_QP_STATE), or -EINVAL if there is no such transition.
 */
int qp_transition(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
	int *required, int *optional);

/* After a run of our direction of qp that ended so: has it watched if it waits for something. */
void qp_watch_after(struct hca_qp *qp, enum run_end end);

/* Our direction of qp is parked, or its peer was not found: progress_slow() looks after it. */
void progress_watch(struct hca_qp *qp);
/*
 * If the process of the other end is dead, frees what it held of qp and true; for where weftd,
 * which does the same, may be down.  Then our direction must be run (again).
 */
bool qp_bury_peer(struct hca_qp *qp);
/* The QP goes: forget it. */
void progress_forget(struct hca_qp *qp);
void progress_forked_child(void);
