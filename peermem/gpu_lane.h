/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How bytes get to a context's device memory and back: a stream of ours, and pinned buffers that
 * several threads share.  A lane is made when memory of its context is first registered, and kept
 * as long as the context lives: to free pinned memory would wait for the program's kernels.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peermem/gpu_api.h"

struct gpu_lane;

/*
 * The lane for memory like range; gpu_lane_put() it.  0; -ENOMEM; -EIO the driver refused, which
 * the log has.
 */
int gpu_lane_get(const struct gpu_api *api, const struct gpu_range *range, struct gpu_lane **out);
void gpu_lane_put(struct gpu_lane *lane);

/* This thread enters the context, and leaves.  0, or -errno: it is gone. */
int gpu_lane_enter(struct gpu_lane *lane, struct gpu_inside *was);
void gpu_lane_leave(struct gpu_lane *lane, const struct gpu_inside *was);

/* Is its context still the one that it was made for? */
bool gpu_lane_is_alive(const struct gpu_lane *lane);

/*
 * Inside.  A write is done with from when it returns, and there once gpu_lane_flush() has returned
 * afterwards; a read is complete.  Writes and reads of a lane happen in the order of the calls.  0
 * or -errno.
 */
int gpu_lane_write(struct gpu_lane *lane, uint64_t to, const void *from, size_t n);
int gpu_lane_read(struct gpu_lane *lane, void *to, uint64_t from, size_t n);
int gpu_lane_flush(struct gpu_lane *lane);

/* In a forked child: it has none; its parent's are left alone. */
void gpu_lane_forked_child(void);
