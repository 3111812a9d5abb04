// SPDX-License-Identifier: BSD-3-Clause
#include "peermem/stats.h"

#include <inttypes.h>
#include <stdio.h>

#include "peermem/client.h"

static const char *const names[PEER_STATS + 1] = {
	"version",
	[1 + PEER_ALLOC_MRS] = "num_alloc_mrs",
	[1 + PEER_DEALLOC_MRS] = "num_dealloc_mrs",
	[1 + PEER_REG_PAGES] = "num_reg_pages",
	[1 + PEER_DEREG_PAGES] = "num_dereg_pages",
	[1 + PEER_REG_BYTES] = "num_reg_bytes",
	[1 + PEER_DEREG_BYTES] = "num_dereg_bytes",
	[1 + PEER_FREE_CALLBACKS] = "num_free_callbacks",
	[1 + PEER_STALE] = "stale_callbacks",
	[1 + PEER_DEADLOCKS] = "deadlocks",
	[1 + PEER_FAILED] = "failed_registrations",
};

/* Whoever comes last with less does not take anything back. */
static void raise_to(_Atomic uint64_t *to, uint64_t value)
{
	uint64_t old = atomic_load_explicit(to, memory_order_relaxed);

	while (old < value && !atomic_compare_exchange_weak_explicit(
				      to, &old, value, memory_order_relaxed, memory_order_relaxed))
		;
}

void peer_count(struct peer_stats *s, enum peer_stat which, uint64_t n)
{
	const uint64_t now =
		atomic_fetch_add_explicit(&s->count[which], n, memory_order_seq_cst) + n;
	_Atomic uint64_t *mirror = atomic_load_explicit(&s->mirror, memory_order_seq_cst);

	if (mirror)
		raise_to(&mirror[which], s->before[which] + now);
}

void peer_stats_mirror(struct peer_stats *s, _Atomic uint64_t *to)
{
	for (unsigned i = 0; i < PEER_STATS; i++)
		s->before[i] = atomic_load_explicit(&to[i], memory_order_relaxed);
	atomic_store_explicit(&s->mirror, to, memory_order_seq_cst);
	for (unsigned i = 0; i < PEER_STATS; i++)
		raise_to(&to[i],
			s->before[i] + atomic_load_explicit(&s->count[i], memory_order_seq_cst));
}

void peer_stats_reset(struct peer_stats *s)
{
	atomic_store_explicit(&s->mirror, NULL, memory_order_relaxed);
	for (unsigned i = 0; i < PEER_STATS; i++)
		atomic_store_explicit(&s->count[i], 0, memory_order_relaxed);
}

uint64_t peer_counted(const struct peer_stats *s, enum peer_stat which)
{
	return atomic_load_explicit(&s->count[which], memory_order_relaxed);
}

const char *peer_stat_name(unsigned i)
{
	return i <= PEER_STATS ? names[i] : NULL;
}

int peer_stat_print(const struct peer_client *c, unsigned i, char *to, size_t size)
{
	if (i == 0)
		return snprintf(to, size, "%s\n", c->version);
	return snprintf(to, size, "%" PRIu64 "\n", peer_counted(&c->stats, i - 1));
}
