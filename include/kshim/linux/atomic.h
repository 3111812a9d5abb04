/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics, all of them in the one order that everybody expects of the kernel's. */
#pragma once

#include <linux/compiler.h>
#include <linux/types.h>
#include <stdatomic.h>

#define ATOMIC_INIT(i)                                                                             \
	{                                                                                          \
		(i)                                                                                \
	}
#define ATOMIC64_INIT(i)                                                                           \
	{                                                                                          \
		(i)                                                                                \
	}

#define atomic_read(v)         atomic_load(&(v)->counter)
#define atomic_set(v, i)       atomic_store(&(v)->counter, (i))
#define atomic_add(i, v)       ((void)atomic_fetch_add(&(v)->counter, (i)))
#define atomic_sub(i, v)       ((void)atomic_fetch_sub(&(v)->counter, (i)))
#define atomic_inc(v)          atomic_add(1, v)
#define atomic_dec(v)          atomic_sub(1, v)
#define atomic_inc_return(v)   (atomic_fetch_add(&(v)->counter, 1) + 1)
#define atomic_dec_return(v)   (atomic_fetch_sub(&(v)->counter, 1) - 1)
#define atomic_dec_and_test(v) (atomic_dec_return(v) == 0)
#define atomic_xchg(v, i)      atomic_exchange(&(v)->counter, (i))

#define atomic64_read          atomic_read
#define atomic64_set           atomic_set
#define atomic64_add           atomic_add
#define atomic64_sub           atomic_sub
#define atomic64_inc           atomic_inc
#define atomic64_dec           atomic_dec
#define atomic64_inc_return    atomic_inc_return

#define kshim_word(p)          ((_Atomic(__typeof__(*(p))) *)(p))
#define xchg(p, v)             atomic_exchange(kshim_word(p), (v))
#define smp_mb()               atomic_thread_fence(memory_order_seq_cst)
#define smp_rmb()              atomic_thread_fence(memory_order_acquire)
#define smp_wmb()              atomic_thread_fence(memory_order_release)
#define mb()                   smp_mb()

/* Puts new where old is, and returns what was there. */
static inline int atomic_cmpxchg(atomic_t *v, int old, int new)
{
	atomic_compare_exchange_strong(&v->counter, &old, new);
	return old;
}

#define cmpxchg(p, old, new)                                                                       \
	({                                                                                         \
		__typeof__(*(p)) kshim_seen = (old);                                               \
		atomic_compare_exchange_strong(kshim_word(p), &kshim_seen, (new));                 \
		kshim_seen;                                                                        \
	})
