/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Async events of the port that wait for ibv_get_async_event: up to eight, in the order in which
 * they happened, a byte each, the oldest lowest.  weftd adds, the owner takes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

enum { PORT_EVENT_BITS = 8, PORT_EVENTS_MAX = 64 / PORT_EVENT_BITS };

/*
 * Adds an event of that type (enum ibv_event_type).  False if it needs no waking: the last one
 * that waits is of the same type, or there is no room, because the owner takes none.
 */
static inline bool port_event_add(_Atomic uint64_t *queue, unsigned type)
{
	uint64_t v = atomic_load_explicit(queue, memory_order_relaxed);
	uint64_t entry = type + 1;
	unsigned used;

	do {
		used = v ? 64 - __builtin_clzll(v) : 0;
		used = (used + PORT_EVENT_BITS - 1) / PORT_EVENT_BITS;
		if (used && v >> (used - 1) * PORT_EVENT_BITS == entry)
			return false;
		if (used == PORT_EVENTS_MAX)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(queue, &v,
		v | entry << used * PORT_EVENT_BITS, memory_order_release, memory_order_relaxed));
	return true;
}

/* Takes the oldest event: its type, or -1 if none waits. */
static inline int port_event_take(_Atomic uint64_t *queue)
{
	uint64_t v = atomic_load_explicit(queue, memory_order_acquire);

	while (v && !atomic_compare_exchange_weak_explicit(queue, &v, v >> PORT_EVENT_BITS,
			    memory_order_acq_rel, memory_order_acquire))
		;
	return (int)(v & ((1 << PORT_EVENT_BITS) - 1)) - 1;
}
