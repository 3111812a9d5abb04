// SPDX-License-Identifier: BSD-3-Clause
#include "peermem/wait.h"

#include <stddef.h>

#include "base/atomic.h"
#include "base/futex.h"

static const struct peer_time monotonic = {clock_ns, futex_wait_shared};
static const struct peer_time *clock_used = &monotonic;

void peer_time_use(const struct peer_time *t)
{
	clock_used = t ? t : &monotonic;
}

struct peer_wait peer_wait_begin(void)
{
	return (struct peer_wait){.begun = clock_used->now()};
}

uint64_t peer_waited(const struct peer_wait *w)
{
	return clock_used->now() - w->begun;
}

void peer_wait_more(
	const struct peer_wait *w, _Atomic uint32_t *word, uint32_t seen, uint64_t till_ns)
{
	uint64_t waited = peer_waited(w);

	if (waited < till_ns)
		clock_used->sleep(word, seen, till_ns - waited);
}

void peer_wake(_Atomic uint32_t *word)
{
	atomic_fetch_add_explicit(word, 1, memory_order_release);
	futex_wake_shared(word);
}
