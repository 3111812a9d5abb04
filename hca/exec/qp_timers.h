/* SPDX-License-Identifier: BSD-3-Clause */
/* What the timer attributes of a queue pair stand for, in ns. */
#pragma once

#include "hca/seg/seg_qp.h"

/* What a min_rnr_timer code stands for. */
uint64_t rnr_timer_ns(unsigned code);

/* How long a request waits for an acknowledgement, all retries together: UINT64_MAX for ever. */
uint64_t ack_patience_ns(const struct seg_qp *q);
