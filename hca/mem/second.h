/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared memory of this process, of which the arena has nothing, a second time: what the program
 * does with its own mapping then leaves the pages alone.
 */
#pragma once

#include <stdint.h>

/*
 * Maps [addr, addr+length) once more, with the same rights; *out: where.  Errors as
 * weft_share_second(3).
 */
int hca_second(void *addr, uint64_t length, void **out);
