/* SPDX-License-Identifier: BSD-3-Clause */
/* Which regions of this process are under the power-failure simulator (weft-crash(1)). */
#pragma once

#include "hca/obj/mr.h"

/*
 * mr, with these flags (enum seg_mr_flags), is about to get its key: MR_JOURNALED if it is under
 * the simulator, and then its contents are in the journal; else 0.
 */
uint32_t crash_region(const struct hca_mr *mr, uint32_t flags);
