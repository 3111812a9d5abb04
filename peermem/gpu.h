/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GPUs as peer clients (docs/gpu.md): of each vendor whose library the program has loaded.  None is
 * loaded here, and none initialised: who has device memory did both.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Looks for libraries that were loaded since, and registers their clients, unless WEFT_GPU=0. True:
 * there is one more.  About 1 us; some ns once all have been found.
 */
bool gpu_look(void);

/* Is all of that range memory of one device?  As clients that gpu_look() registered say. */
bool gpu_owns(uint64_t addr, uint64_t length);

/* In a forked child: what the parent had of a driver is not touched. */
void gpu_forked_child(void);
