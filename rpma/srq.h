/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues. */
#pragma once

#include "rpma/cq.h"

struct rpma_srq {
	struct ibv_srq *srq;
	struct rpma_cq *rcq; /* or NULL */
};
