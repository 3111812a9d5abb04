/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics and ATOMIC WRITE. */
#pragma once

#include "hca/exec/work.h"

/* Each executes w; the responder is ready. */
enum step op_atomic(struct work *w);
enum step op_atomic_write(struct work *w);
