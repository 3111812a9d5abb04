/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdbool.h>

/*
 * Opens umad<number>, or issm<number>, with the flags of open(2).  The fd, or a negative errno:
 * -ENXIO there is no such device any more; those of umad_file_open() and umad_issm_open().
 */
int open_numbered(bool issm, unsigned number, int flags);
