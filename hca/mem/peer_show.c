// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/peer_show.h"

#include <stdio.h>
#include <string.h>

#include "base/at_open.h"
#include "base/log.h"
#include "hca/proc/proc.h"
#include "peermem/refused.h"
#include "peermem/registry.h"

_Static_assert((int)PEER_STATS <= (int)SEG_PEER_COUNTS, "all are shown");

static struct lock lock;

/* Of a client that left, for names are unique: one that comes again counts on. */
static bool is_of(const struct seg_peer *p, const char *name, const char *version)
{
	return !strncmp(p->name, name, sizeof p->name) &&
	       !strncmp(p->version, version, sizeof p->version);
}

/* The counters of an entry; NULL: there is no room. */
static _Atomic uint64_t *place(const char *name, const char *version)
{
	struct seg_peer *p = proc_seg()->peer, *end = p + SEG_PEERS;

	for (; p < end && atomic_load_explicit(&p->shown, memory_order_relaxed); p++)
		if (is_of(p, name, version))
			return p->count;
	if (p == end) {
		log_line(LOG_LVL_WARN, "peer client %s is not shown: there is no room", name);
		return NULL;
	}
	snprintf(p->name, sizeof p->name, "%s", name);
	snprintf(p->version, sizeof p->version, "%s", version);
	atomic_store_explicit(&p->shown, 1, memory_order_release);
	return p->count;
}

AT_OPEN void peer_show(void)
{
	peer_refused_at(&proc_seg()->counters[0][CTR_PEER_REFUSED]);
	if (!peer_registry_any())
		return;
	lock_take(&lock);
	peer_registry_show(place);
	lock_drop(&lock);
}

void peer_show_forked_child(void)
{
	const struct lock open = {.word = 0};

	lock = open;
	peer_refused_forked_child();
}
