/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that the peer does not hear of: binding a window, invalidating a key. */
#pragma once

#include "hca/exec/work.h"

/* Executes w.  STEP_BUSY: a peer may still use the key that was invalidated. */
enum step op_local(struct work *w);
