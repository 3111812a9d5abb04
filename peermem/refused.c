// SPDX-License-Identifier: BSD-3-Clause
#include "peermem/refused.h"

#include <stddef.h>

#include "base/at_open.h"
#include "base/lock.h"

static struct {
	struct lock lock;
	uint64_t waiting; /* counted nowhere yet */
	_Atomic uint64_t *at;
} refused AT_OPEN_DATA;

/* With the lock held. */
static void hand_on(void)
{
	if (!refused.at || !refused.waiting)
		return;
	atomic_fetch_add_explicit(refused.at, refused.waiting, memory_order_relaxed);
	refused.waiting = 0;
}

void peer_refused(void)
{
	lock_take(&refused.lock);
	refused.waiting++;
	hand_on();
	lock_drop(&refused.lock);
}

void peer_refused_at(_Atomic uint64_t *to)
{
	lock_take(&refused.lock);
	refused.at = to;
	hand_on();
	lock_drop(&refused.lock);
}

void peer_refused_forked_child(void)
{
	const struct lock open = {.word = 0};

	refused.lock = open;
	refused.at = NULL;
}
