/* SPDX-License-Identifier: BSD-3-Clause */
/* The common RDMA request, without the lists that a mover takes. */
#pragma once

#include "hca/exec/work.h"

/*
 * Executes an RDMA WRITE without immediate, or a READ, of one piece of our own memory and one of
 * another process's arena, in one step: *s says how that ended.  False: it is not that simple, or
 * something forbids it; nothing was done.
 */
bool op_rdma_plain(struct work *w, enum step *s);
