/* SPDX-License-Identifier: BSD-3-Clause */
/* Which transitions of a QP there are, and what they take. */
#pragma once

#include <infiniband/verbs.h>

/*
 * The attributes that a transition of this QP type takes: 0 and the two masks (enum
 * ibv_qp_attr_mask, without IBV_QP_STATE), or -EINVAL if there is no such transition.
 */
int qp_transition(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
	int *required, int *optional);
