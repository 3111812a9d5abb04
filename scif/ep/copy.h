/* SPDX-License-Identifier: BSD-3-Clause */
/* What a copy is to do. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct rma_args {
	bool write;  /* to the peer */
	bool memory; /* the local side is addr, else the window at loff */
	void *addr;
	int64_t loff, roff;
	uint64_t len;
	int flags;
};
