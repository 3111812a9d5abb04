// SPDX-License-Identifier: BSD-3-Clause
#include "peermem/invalidate.h"

#include <errno.h>
#include <inttypes.h>

#include "base/log.h"
#include "peermem/life.h"
#include "peermem/registry.h"

enum { SPOILED = 1 }; /* the registration will fail; nothing to wait for */

static int would_wait_for_itself(struct peer_region *r)
{
	r->failed = true;
	peer_count(&r->client->stats, PEER_DEADLOCKS, 1);
	log_line(LOG_LVL_WARN,
		"peer client %s, region %#" PRIx64 "+%#" PRIx64
		": the callback inside %s of the same registration, which fails",
		r->client->ops.name, r->request.addr, r->request.length, r->maker.in);
	return -EDEADLK;
}

/* While r is being registered.  0: it is live, or undone. */
static int before_live(struct peer_region *r)
{
	if (r->state < peer_generation()->mark_below) {
		r->failed = true;
		return SPOILED;
	}
	if (peer_guest_self(r->guests, PEER_MAKES))
		return would_wait_for_itself(r);
	if (!peer_await(r, PEER_MAKES))
		return 0;
	r->failed = true; /* the client may count on what it was not promised */
	return -ETIMEDOUT;
}

static int tell_hca(struct peer_region *r, struct peer_guest *g)
{
	int rc;

	r->state = PEER_DEAD;
	g->roles |= PEER_REVOKES;
	lock_drop(&r->lock);
	rc = r->request.revoke(r);
	lock_take(&r->lock);
	r->still_used = rc;
	g->roles &= ~PEER_REVOKES;
	if (rc)
		peer_count(&r->client->stats, PEER_DEADLOCKS, 1);
	peer_changed(r);
	return rc;
}

/* The HCA could not end all access.  (Before it lets a region be dropped it has.) */
static bool is_still_used(const struct peer_region *r)
{
	return r->state == PEER_DEAD && r->still_used;
}

/* Ends all access; ops: those that are waited for. */
static int revoke_and_wait(struct peer_region *r, struct peer_guest *g, enum peer_role ops)
{
	int rc = r->state == PEER_LIVE || is_still_used(r) ? tell_hca(r, g) : 0;

	if (!rc)
		rc = peer_await(r, PEER_REVOKES | ops);
	/* Another thread may have told it meanwhile. */
	if (!rc && is_still_used(r))
		rc = -ETIMEDOUT;
	if (!rc)
		peer_pieces_let_go(&r->pieces);
	return rc;
}

static int give_pages_back(struct peer_region *r, struct peer_guest *g)
{
	const unsigned inside = peer_generation()->release_inside ? PEER_DID_ACQUIRE : 0;

	if (r->client->unmaps) {
		if (r->state == PEER_DEAD)
			peer_disown(r);
		return 0;
	}
	/* Whoever deregisters it does; but not while this thread's operation keeps him waiting.
	 * One that gave up is not there any more. */
	if (r->state == PEER_DEREG && peer_guest_other(r->guests, PEER_DROPS) &&
		!peer_guest_self(r->guests, PEER_OP))
		return peer_await(r, PEER_DROPS | PEER_UNDOES);
	peer_undo(r, g, PEER_DID_PAGES | inside);
	return peer_await(r, PEER_UNDOES);
}

static int take_away(struct peer_region *r, struct peer_guest *g)
{
	int rc = r->state < PEER_LIVE ? before_live(r) : 0;

	if (rc)
		return rc;
	rc = revoke_and_wait(r, g, PEER_RUNS);
	return rc ? rc : give_pages_back(r, g);
}

/*
 * The same, perhaps inside an operation: of two that call back neither waits for the other.  What
 * either still does in there the client knows, which has taken the memory away there.
 */
static int take_away_inside(struct peer_region *r, struct peer_guest *g)
{
	const bool op = peer_guest_calls(r->guests);
	int rc;

	if (op)
		peer_changed(r);
	rc = take_away(r, g);
	if (op && rc)
		peer_guest_calls_not(r->guests);
	return rc;
}

static void leave(struct peer_region *r, struct peer_guest *g)
{
	peer_guest_remove(&r->guests, g);
	peer_changed(r);
	lock_drop(&r->lock);
}

int peer_invalidate(void *reg_handle, u64 core_context)
{
	struct peer_guest g;
	struct peer_region *r = peer_registry_find(reg_handle, core_context, &g);
	int rc;

	if (!r)
		return 0;
	lock_take(&r->lock);
	rc = take_away_inside(r, &g);
	leave(r, &g);
	return rc == SPOILED ? 0 : rc;
}

/* The same, whatever the client's flags say. */
static int evict(struct peer_region *r, struct peer_guest *g)
{
	int rc = 0;

	if (r->state < PEER_LIVE) {
		r->failed = true;
		rc = peer_await(r, PEER_MAKES);
	}
	if (!rc)
		rc = revoke_and_wait(r, g, PEER_OP);
	if (rc)
		return rc;
	peer_undo(r, g, PEER_DID_ALL);
	return peer_await(r, PEER_UNDOES);
}

void peer_evict(struct peer_region *r, struct peer_guest *g)
{
	lock_take(&r->lock);
	if (evict(r, g)) {
		log_line(LOG_LVL_ERROR,
			"peer client %s leaves region %#" PRIx64 "+%#" PRIx64 " as it is",
			r->client->ops.name, r->request.addr, r->request.length);
		r->done = 0;
	}
	leave(r, g);
}
