/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes of this process's regions that only functions of their kind reach (struct mr_io). */
#pragma once

#include "hca/exec/owned.h"

struct hca_mr;

/* For the executor: by key. */
extern const struct owned_calls own_bytes;

/*
 * The same for a region that is known and stays: n bytes at addr.  0, -ERANGE or what its kind
 * answered.  What was written can be seen once this returns.
 */
int own_read(struct hca_mr *mr, uint64_t addr, void *to, uint64_t n);
int own_write(struct hca_mr *mr, uint64_t addr, const void *from, uint64_t n);
/* As owned_calls.update. */
int own_update(struct hca_mr *mr, uint64_t addr, bool add, uint64_t a, uint64_t b, uint64_t *old);
