/* SPDX-License-Identifier: BSD-3-Clause */
/* What a subnet manager says to MADs that come for it. */
#pragma once

#include <stdbool.h>

#include "wire/smp.h"

/*
 * The reply to a MAD on QP0: to a Get of SMInfo the one given, to its Set "unsupported", to a trap
 * a TrapRepress.  False: it is none of these.
 */
bool answer_smp(const struct sm_info *self, const uint8_t mad[MAD_SIZE], uint8_t reply[MAD_SIZE]);
