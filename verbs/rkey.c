// SPDX-License-Identifier: BSD-3-Clause
/* What libraries on top look up: <weft/rkey.h>, what a peer's key allows; <weft/breach.h>. */
#include "verbs/objects.h"

#pragma GCC visibility push(default)
#include "include/weft/breach.h"
#include "include/weft/rkey.h"
#pragma GCC visibility pop

int weft_rkey_access(struct ibv_qp *qp, uint32_t rkey, unsigned *access)
{
	return to_errno(hca_qp_rkey_access(to_qp(qp)->hca, rkey, access));
}

void weft_count_breach(struct ibv_context *context)
{
	(void)context;
	hca_count_breach();
}
