/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs as a whole. */
#pragma once

#include "hca/obj/srq.h"

/*
 * Takes the QP out of service: writes the state word, waits until nobody uses it any more, and
 * drops its completions.  The modify lock is held.
 */
void qp_stop(struct hca_qp *qp, uint32_t new_state);
