/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weft/share.h of the libibverbs that this process runs with.  The functions are looked up, not
 * linked: a library that names their version node does not load beside rdma-core's libibverbs.
 */
#pragma once

#include "weft/share.h"

struct share_calls {
	__typeof__(weft_share_export) *export;
	__typeof__(weft_share_close) *close;
	__typeof__(weft_share_map) *map;
	__typeof__(weft_share_unmap) *unmap;
	__typeof__(weft_share_second) *second; /* NULL: it has not this one */
};

/* The functions, or NULL: that libibverbs lacks them. */
const struct share_calls *share_calls(void);
