/* SPDX-License-Identifier: BSD-3-Clause */
/* Taking completions out of a CQ. */
#pragma once

#include "hca/obj/cq.h"

/* The oldest ticket of the CQ, taken out; 0: there is none.  The lock is held. */
uint64_t cq_next_ticket(struct hca_cq *cq);
