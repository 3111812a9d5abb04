/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles, from the inside. */
#pragma once

#include "hca/api/hca.h"
#include "hca/seg/seg.h"

/* Copies where a datagram goes into its slot: the handle may be destroyed right after posting. */
void ah_fill(const struct ibv_ah *ah, uint32_t qpn, uint32_t qkey, struct seg_wqe *w);
