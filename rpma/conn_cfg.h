/* SPDX-License-Identifier: BSD-3-Clause */
/* How connections and shared receive queues are made. */
#pragma once

#include <stdatomic.h>

#include "rpma/rpma.h"

/* The members are independent: relaxed order. */
struct rpma_conn_cfg {
	atomic_int timeout_ms;
	atomic_uint cq_size, rcq_size, sq_size, rq_size;
	atomic_bool shared_channel;
	_Atomic(struct rpma_srq *) srq;
};

/* What NULL stands for. */
extern const struct rpma_conn_cfg conn_cfg_default;
