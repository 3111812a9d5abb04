/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics.  All code uses the C11 names of <stdatomic.h> with stated orders; this header adds
 * what C11 lacks.  A build with WEFT_MODEL replaces the operations by ones that first hand
 * control to the model explorer (tests/model/), so that the explorer runs the very protocol
 * code that ships.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#ifdef WEFT_MODEL
#include "model_atomic.h"
#endif

enum { CACHE_LINE = 64 };

/*
 * Orders a preceding atomic read-modify-write, and all before it, before everything after.
 * On x86 a locked instruction already does; elsewhere a full fence.
 */
static inline void fence_after_rmw(void)
{
#if defined(__x86_64__)
	__asm__ __volatile__("" ::: "memory");
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/*
 * Aligned words that are no atomic objects, since they are a program's or written by an adapter.
 * The model does not see these; what our own code shares is _Atomic.
 */
static inline uint64_t foreign_load64(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline void foreign_store64(uint64_t *p, uint64_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

static inline void foreign_store32(uint32_t *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

/* Tells the CPU that this is a spin loop. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield" ::: "memory");
#endif
}

/*
 * Asks for the line that holds p, to be written soon: no other CPU has it then.  Never faults.
 */
static inline void prefetch_write(const void *p)
{
#if defined(__x86_64__)
	/* The builtin only reads here unless the compiler is told of a newer CPU; older ones skip
	 * it. */
	__asm__ __volatile__("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1, 3);
#endif
}

/* Asks for the line that holds p, to be read soon.  Never faults. */
static inline void prefetch_read(const void *p)
{
	__builtin_prefetch(p, 0, 3);
}
