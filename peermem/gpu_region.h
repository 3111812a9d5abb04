/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peer client of a row of gpu_api.h: whose memory a range is, and a DMA window over each region
 * whose functions go through the lane of its context.  No driver tells when memory is freed: before
 * each call the allocations are compared with those that were registered, and if one is another,
 * the region is taken away.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "peermem/gpu_api.h"

/* Registers the client.  False: the name is taken, or no memory; the log has it. */
bool gpu_register(const struct gpu_api *api);

/* Does all of the range lie in allocations of one device?  After gpu_register(). */
bool gpu_is_device_memory(uint64_t addr, uint64_t length);

/* In a forked child: drivers that the parent used are asked no more. */
void gpu_regions_forked_child(void);
