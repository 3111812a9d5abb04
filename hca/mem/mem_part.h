/* SPDX-License-Identifier: BSD-3-Clause */
/* What the regions do when something happens to this process (hca/proc/parts.h). */
#pragma once

#include "hca/proc/parts.h"

extern const struct proc_part mem_part;
