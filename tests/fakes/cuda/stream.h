/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fake driver's streams: a thread for each, which does what was asked for late (when somebody
 * waits for it, or after FAKE_CUDA_LATE_US, 300 unless the environment has another; 0: copies are
 * done in the call itself, for measurements).
 */
#pragma once

#include <stdbool.h>

struct CUctx_st;
struct CUstream_st;

/* Waits until s, or all if it is NULL, have done everything. */
void streams_drain(struct CUstream_st *s);

/* The streams of that context can no longer be used. */
void streams_lose(const struct CUctx_st *c);

/*
 * What a call that is unsafe while a stream is captured answers in this thread: 0, or an error, and
 * the captures concerned are broken.  default_stream: it uses that.
 */
int capture_forbids(bool default_stream);
