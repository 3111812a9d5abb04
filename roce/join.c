// SPDX-License-Identifier: BSD-3-Clause
#include "roce/join.h"

#include <errno.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/lock.h"

static struct {
	struct lock lock;
	const struct rdv_wire *_Atomic wire;
	uint64_t again_ns; /* not before */
	int error;
} joined;

static int join(void)
{
	const struct rdv_wire *wire;
	uint64_t now = clock_coarse_ns();

	if (join_sockets())
		return 0;
	if (joined.error && now < joined.again_ns)
		return joined.error;
	joined.error = rdv_wire_join(&wire);
	joined.again_ns = now + NSEC_PER_SEC;
	if (!joined.error)
		atomic_store_explicit(&joined.wire, wire, memory_order_release);
	return joined.error;
}

int join_wire(void)
{
	int rc = 0;

	if (join_sockets())
		return 0;
	if (wire_mode() == WIRE_NEVER)
		return -EOPNOTSUPP;
	lock_take(&joined.lock);
	rc = join();
	lock_drop(&joined.lock);
	return rc;
}

const struct rdv_wire *join_sockets(void)
{
	return atomic_load_explicit(&joined.wire, memory_order_acquire);
}

bool join_whole(void)
{
	return !join_sockets() || rdv_wire_whole();
}

void join_drop(void)
{
	atomic_store_explicit(&joined.wire, NULL, memory_order_relaxed);
}

void join_forked_child(void)
{
	atomic_store_explicit(&joined.lock.word, 0, memory_order_relaxed);
	atomic_store_explicit(&joined.wire, NULL, memory_order_relaxed);
	joined.error = 0;
}
