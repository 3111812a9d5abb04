// SPDX-License-Identifier: BSD-3-Clause
#include "peermem/fork.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "peermem/registry.h"

#define PATIENCE_NS NSEC_PER_SEC

enum { NAP_NS = 100 * 1000 };

static _Atomic uint32_t forking; /* threads that fork */

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

bool peer_fork_begins(void)
{
	return atomic_load_explicit(&forking, memory_order_seq_cst);
}

bool peer_fork_pass(void)
{
	const uint64_t until = clock_ns() + PATIENCE_NS;

	while (peer_fork_begins() && clock_ns() < until)
		nap();
	return !peer_fork_begins();
}

/* (An operation adds itself, then looks at the word: one of us sees the other.) */
static void before(void)
{
	uint64_t until;

	atomic_fetch_add_explicit(&forking, 1, memory_order_seq_cst);
	if (!peer_registry_busy())
		return;
	until = clock_ns() + PATIENCE_NS;
	while (peer_registry_busy() && clock_ns() < until)
		nap();
	if (peer_registry_busy())
		log_line(LOG_LVL_WARN,
			"fork while a peer client copies, for more than a second: what it holds "
			"the child will not get");
}

static void after_parent(void)
{
	atomic_fetch_sub_explicit(&forking, 1, memory_order_seq_cst);
}

static void after_child(void)
{
	atomic_store_explicit(&forking, 0, memory_order_relaxed);
}

static void watch(void)
{
	pthread_atfork(before, after_parent, after_child);
}

void peer_fork_watch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
}
