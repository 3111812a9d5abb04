/* SPDX-License-Identifier: BSD-3-Clause */
/* What ThreadSanitizer has to know. */
#pragma once

#if defined(__SANITIZE_THREAD__)
#define WEFT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFT_TSAN 1
#endif
#endif

/* A function that reads, by design, what another thread may be writing, and takes any answer. */
#define RACY_GUESS __attribute__((noinline, no_sanitize("thread")))
