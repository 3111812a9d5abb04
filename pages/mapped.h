/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Is every page of [addr, addr+len) mapped, readable, and writable if asked?  0 or -EFAULT.
 * Reads the process's map, touches no page: PROCMAP_QUERY (Linux 6.11) where there is, else the
 * text of /proc/self/maps.  Without /proc: 0.
 */
int mapped_check(uint64_t addr, uint64_t len, bool writable);

/*
 * Makes the pages of [addr, addr+len) present, to be written if write, so that a hole becomes an
 * error here and not a signal.  False: one is not mapped, or not with that right.  Blocks for the
 * kernel to find pages; keeps errno.
 */
bool mapped_populate(uint64_t addr, uint64_t len, bool write);
