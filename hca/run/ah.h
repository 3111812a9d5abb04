/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles, from the inside. */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "hca/api/hca.h"
#include "hca/seg/seg.h"

/*
 * Copies where a datagram goes into its slot: the handle may be destroyed right after posting.  One
 * of another domain than pd, the queue pair's, leads nowhere: the request ends in LOC_QP_OP_ERR.
 */
void ah_fill(const struct hca_pd *pd, const struct ibv_ah *ah, uint32_t qpn, uint32_t qkey,
	struct seg_wqe *w);

static inline bool ah_is_of_another(const struct seg_wqe *w)
{
	static const uint8_t nowhere[sizeof w->av.dgid];

	return !memcmp(w->av.dgid, nowhere, sizeof nowhere);
}
