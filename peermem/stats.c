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

void peer_count(struct peer_stats *s, enum peer_stat which, uint64_t n)
{
	atomic_fetch_add_explicit(&s->count[which], n, memory_order_relaxed);
}

void peer_stats_reset(struct peer_stats *s)
{
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
