/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which process can reach whose memory by process_vm_*.  Each publishes at attach what it can and
 * what it allows, so that both ends of a connection find the same answer without a message.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hca/seg/seg.h"

/*
 * Finds out what this process can and allows: enum reach_flags.  WEFT_MOVER=agent makes it unable
 * to call, WEFT_MOVER=cma sure that it can.  Blocks for a few system calls; keeps errno.
 */
uint32_t reach_find_out(void);

/* Can a process with flags from reach the memory of one with flags to by cma? */
bool reach_by_cma(uint32_t from, uint32_t to, bool same_pid_ns);
