/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes and accesses that the compiler shall not change. */
#pragma once

#define __user
#define __iomem
#define __force
#define __rcu
#define __must_check     __attribute__((warn_unused_result))
#define __maybe_unused   __attribute__((unused))
#define __always_unused  __attribute__((unused))
#define __weak           __attribute__((weak))
#define noinline         __attribute__((noinline))

#define likely(x)        __builtin_expect(!!(x), 1)
#define unlikely(x)      __builtin_expect(!!(x), 0)
#define barrier()        __asm__ volatile("" ::: "memory")

#define READ_ONCE(x)     (*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))
#define ACCESS_ONCE(x)   (*(volatile __typeof__(x) *)&(x))
#define fallthrough      __attribute__((fallthrough))
