/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies between windows, and between memory and windows. */
#pragma once

#include "scif/ep/ep.h"

struct rma_args {
	bool write;  /* to the peer */
	bool memory; /* the local side is addr, else the window at loff */
	void *addr;
	int64_t loff, roff;
	uint64_t len;
	int flags;
};

/* scif_writeto() and its kin, without conversion of errors. */
int rma_copy(struct scif_ep *ep, const struct rma_args *args);
