/* SPDX-License-Identifier: BSD-3-Clause */
/* What a work request does: whether its responder is ready, and which operation it is. */
#pragma once

#include "hca/exec/work.h"

/* Executes it.  w->resp is not NULL, unless op_is_local(). */
enum step op_execute(struct work *w);
