/* SPDX-License-Identifier: BSD-3-Clause */
/* What the running of queues does when something happens to this process (hca/proc/parts.h). */
#pragma once

#include "hca/proc/parts.h"

extern const struct proc_part run_part;
