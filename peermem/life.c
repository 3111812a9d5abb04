// SPDX-License-Identifier: BSD-3-Clause
#include "peermem/life.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "peermem/wait.h"

static void tell(const struct peer_region *r, const struct peer_guest *other, enum log_level level,
	const char *how)
{
	const struct peer_guest *me = peer_guest_self(r->guests, PEER_ANY_ROLE);

	log_line(level,
		"peer client %s, region %#" PRIx64 "+%#" PRIx64
		": thread %d in %s %s thread %d in %s",
		r->client->ops.name, r->request.addr, r->request.length, (int)gettid(),
		me ? me->in : "ibv_dereg_mr", how, (int)other->tid, other->in);
}

static int give_up(struct peer_region *r, const struct peer_guest *other)
{
	peer_count(&r->client->stats, PEER_DEADLOCKS, 1);
	tell(r, other, LOG_LVL_ERROR, "gave up waiting for");
	return -ETIMEDOUT;
}

static void sleep_till(struct peer_region *r, const struct peer_wait *w, uint64_t till_ns)
{
	uint32_t seen = atomic_load_explicit(&r->changes, memory_order_relaxed);

	r->waiting++;
	lock_drop(&r->lock);
	peer_wait_more(w, &r->changes, seen, till_ns);
	lock_take(&r->lock);
	r->waiting--;
}

int peer_await(struct peer_region *r, unsigned roles)
{
	const struct peer_guest *other = peer_guest_other(r->guests, roles);
	struct peer_wait w;

	if (!other)
		return 0;
	w = peer_wait_begin();
	for (; other; other = peer_guest_other(r->guests, roles)) {
		uint64_t waited = peer_waited(&w);

		if (waited >= PEER_GIVE_UP_NS)
			return give_up(r, other);
		if (waited >= PEER_TELL_NS && !w.told) {
			w.told = true;
			tell(r, other, LOG_LVL_WARN, "waits for");
		}
		sleep_till(r, &w, w.told ? PEER_GIVE_UP_NS : PEER_TELL_NS);
	}
	return 0;
}

void peer_changed(struct peer_region *r)
{
	if (r->waiting)
		peer_wake(&r->changes);
}

static void count_undone(struct peer_region *r)
{
	struct peer_stats *s = &r->client->stats;

	if (!r->counted)
		return;
	r->counted = false;
	peer_count(s, PEER_DEALLOC_MRS, 1);
	peer_count(s, PEER_DEREG_PAGES, r->pages_counted);
	peer_count(s, PEER_DEREG_BYTES, r->bytes_counted);
}

static void unmap(struct peer_region *r)
{
	int rc = r->client->ops.dma_unmap(&r->table, r->context, r->request.device);

	if (rc)
		log_line(LOG_LVL_WARN, "peer client %s: dma_unmap answered %d", r->client->ops.name,
			rc);
	count_undone(r);
}

static void put(struct peer_region *r)
{
	r->client->ops.put_pages(&r->table, r->context);
}

static void release(struct peer_region *r)
{
	if (r->client->ops.release)
		r->client->ops.release(r->context);
}

static const struct undoing {
	unsigned step;
	const char *in;
	void (*run)(struct peer_region *r);
} undoing[] = {
	{PEER_DID_MAP, "dma_unmap", unmap},
	{PEER_DID_PIN, "put_pages", put},
	{PEER_DID_ACQUIRE, "release", release},
};

void peer_undo(struct peer_region *r, struct peer_guest *g, unsigned steps)
{
	const unsigned mine = r->done & steps;
	const char *in = g->in;

	r->done &= ~steps;
	if (!mine)
		return;
	g->roles |= PEER_UNDOES;
	for (size_t i = 0; i < sizeof undoing / sizeof *undoing; i++) {
		if (!(mine & undoing[i].step))
			continue;
		g->in = undoing[i].in;
		lock_drop(&r->lock);
		undoing[i].run(r);
		lock_take(&r->lock);
	}
	g->roles &= ~PEER_UNDOES;
	g->in = in;
	peer_changed(r);
}

void peer_disown(struct peer_region *r)
{
	count_undone(r);
	r->done &= ~PEER_DID_PAGES;
}
