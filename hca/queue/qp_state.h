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
 * The attributes that a transition of this QP type takes: 0 and the two masks (enum
 * ibv_qp_attr_mask, without IBV_QP_STATE), or -EINVAL if there is no such transition.
 */
int qp_transition(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
	int *required, int *optional);
