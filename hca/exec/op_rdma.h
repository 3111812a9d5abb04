/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA WRITE and READ. */
#pragma once

#include "hca/exec/work.h"

/* Each executes w; the responder is ready. */
enum step op_write(struct work *w);
enum step op_read(struct work *w);

/*
 * READs, atomics and FLUSHes need resources that both ends agreed on.  True: there are none, and
 * the request ended in *s.
 */
bool op_no_rd_atomic(struct work *w, enum step *s);
