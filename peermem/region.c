// SPDX-License-Identifier: BSD-3-Clause
#include "peermem/region.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "peermem/fork.h"
#include "peermem/life.h"
#include "peermem/registry.h"

enum { PAGE = 4096, MAX_ERRNO = 4095 };

/* What a client answered as 0 or -errno: anything else is no answer. */
static int checked(int answer, const char **why)
{
	if (answer <= 0 && answer >= -MAX_ERRNO)
		return answer;
	*why = "the answer is neither 0 nor a negative errno";
	return -EINVAL;
}

/* ---- the steps of a registration ---- */

static int pin(struct peer_region *r, const char **why)
{
	const struct peer_generation *row = peer_generation();
	const struct peer_request *q = &r->request;
	const int write = row->force_always ? q->writable : 1;
	const int force = row->force_always ? 1 : !q->writable;

	return checked(r->client->ops.get_pages(q->addr, q->length, write, force,
			       row->table_at_pin ? &r->table : NULL, r->context, r->ticket),
		why);
}

static int ask_page_size(struct peer_region *r, const char **why)
{
	r->page_size = PAGE;
	if (r->client->ops.get_page_size)
		r->page_size = r->client->ops.get_page_size(r->context);
	if (r->page_size >= PAGE && !(r->page_size & (r->page_size - 1)))
		return 0;
	*why = "not a power of two from 4096 on";
	return -EINVAL;
}

static int page_size_first(struct peer_region *r, const char **why)
{
	return peer_generation()->page_size_first ? ask_page_size(r, why) : 0;
}

static int page_size_last(struct peer_region *r, const char **why)
{
	return peer_generation()->page_size_first ? 0 : ask_page_size(r, why);
}

static int map(struct peer_region *r, const char **why)
{
	r->nmap = 0;
	return checked(
		r->client->ops.dma_map(&r->table, r->context, r->request.device, 0, &r->nmap), why);
}

static void count_mapped(struct peer_region *r)
{
	const struct peer_generation *row = peer_generation();
	struct peer_stats *s = &r->client->stats;

	r->pages_counted = r->nmap * (row->host_pages ? r->page_size / PAGE : 1);
	r->bytes_counted = row->bytes_by_entry ? r->nmap * r->page_size : r->request.length;
	r->counted = true;
	peer_count(s, PEER_ALLOC_MRS, 1);
	peer_count(s, PEER_REG_PAGES, r->pages_counted);
	peer_count(s, PEER_REG_BYTES, r->bytes_counted);
}

static int take_table(struct peer_region *r, const char **why)
{
	const uint64_t mask = r->page_size - 1, begin = r->request.addr & ~mask;
	const uint64_t need = (r->request.addr + r->request.length + mask - begin) & ~mask;

	return peer_table_take(&r->table, r->nmap, need, &r->pieces, why);
}

static const struct step {
	const char *name;
	int (*run)(struct peer_region *r, const char **why);
	unsigned done;
	enum peer_state state; /* afterwards */
} steps[] = {
	{"get_pages", pin, PEER_DID_PIN, PEER_PINNED},
	{"get_page_size", page_size_first, 0, PEER_PINNED},
	{"dma_map", map, PEER_DID_MAP, PEER_PINNED},
	{"get_page_size", page_size_last, 0, PEER_PINNED},
	{"its table", take_table, 0, PEER_MAPPED},
};

/* The step is done; -EINVAL if the memory was taken away meanwhile. */
static int advance(struct peer_region *r, const struct step *s)
{
	r->done |= s->done;
	r->state = s->state;
	if (r->state == PEER_MAPPED)
		count_mapped(r);
	return r->failed ? -EINVAL : 0;
}

static int run_step(struct peer_region *r, const struct step *s, struct peer_trace *t)
{
	const char *why = NULL;
	int rc;

	r->maker.in = s->name;
	lock_drop(&r->lock);
	rc = s->run(r, &why);
	lock_take(&r->lock);
	if (!rc) {
		rc = advance(r, s);
		why = rc ? "the client took the memory away" : NULL;
	}
	if (rc)
		peer_trace_fail(t, s->name, why, rc);
	return rc;
}

/* ---- ends ---- */

void peer_region_forget(struct peer_region *r)
{
	peer_pieces_free(&r->pieces);
	free(r);
}

/* No callback finds r any more: the last call, and the memory.  Drops the lock. */
static int finish(struct peer_region *r)
{
	struct peer_guest g;
	int rc;

	peer_guest_add(&r->guests, &g, 0, "ibv_dereg_mr");
	peer_undo(r, &g, PEER_DID_ACQUIRE);
	peer_guest_remove(&r->guests, &g);
	rc = peer_await(r, PEER_CALLBACK);
	lock_drop(&r->lock);
	while (!rc && !peer_registry_left(r)) { /* the client itself is going */
		lock_take(&r->lock);
		rc = peer_await(r, PEER_CALLBACK);
		lock_drop(&r->lock);
	}
	if (rc)
		return rc;
	peer_region_forget(r);
	return 0;
}

/*
 * Gives the pages back, once no operation runs, and then the rest, once no callback does; g is this
 * thread's guest, which leaves.  The lock is taken, and dropped.  0, or -ETIMEDOUT: r remains.
 */
static int dismantle(struct peer_region *r, struct peer_guest *g)
{
	int rc;

	r->state = PEER_DEREG;
	rc = peer_await(r, PEER_OP);
	if (!rc) {
		peer_pieces_let_go(&r->pieces);
		peer_undo(r, g, PEER_DID_PAGES);
	}
	peer_guest_remove(&r->guests, g);
	peer_changed(r);
	lock_drop(&r->lock);
	if (rc)
		return rc;
	peer_registry_hide(r);
	lock_take(&r->lock);
	rc = peer_await(r, PEER_CALLBACK | PEER_UNDOES);
	if (!rc)
		return finish(r);
	lock_drop(&r->lock);
	return rc;
}

/* ---- calls ---- */

/* The steps after acquire.  Takes and drops the lock. */
static int build(struct peer_region *r, struct peer_trace *t)
{
	int rc = 0;

	lock_take(&r->lock);
	for (size_t i = 0; i < sizeof steps / sizeof *steps && !rc; i++)
		rc = run_step(r, &steps[i], t);
	if (!rc) {
		r->maker.in = t->call;
		lock_drop(&r->lock);
		return 0;
	}
	peer_count(&r->client->stats, PEER_FAILED, 1);
	dismantle(
		r, &r->maker); /* a callback that does not end keeps the rest, and the log has it */
	return rc;
}

static int make(struct peer_region *r, struct peer_trace *t)
{
	int rc;

	peer_guest_add(&r->guests, &r->maker, PEER_MAKES, "acquire");
	rc = peer_registry_claim(r, t);
	if (rc <= 0) {
		free(r);
		return rc;
	}
	rc = build(r, t);
	return rc ? rc : 1;
}

/* Also in whole pages; a kernel's core does not ask for such a range either. */
static bool wraps(const struct peer_request *q)
{
	const uint64_t end = q->addr + q->length;

	return end < q->addr || end > -(uint64_t)PAGE;
}

static int refuse_range(const struct peer_request *q, struct peer_trace *t)
{
	peer_trace_fail(t, "its range", "it wraps around, in whole pages", -EINVAL);
	peer_trace_say(t, q->addr, q->length);
	return -EINVAL;
}

int peer_region_make(const struct peer_request *q, struct peer_region **out, struct peer_trace *t)
{
	struct peer_region *r;
	int rc;

	*out = NULL;
	peer_trace_begin(t, q->call);
	if (!peer_registry_any())
		return 0;
	if (wraps(q))
		return refuse_range(q, t);
	r = calloc(1, sizeof *r);
	if (!r)
		return -ENOMEM;
	r->request = *q;
	rc = make(r, t);
	if (rc < 0)
		peer_trace_say(t, q->addr, q->length);
	if (rc <= 0)
		return rc;
	*out = r;
	return 0;
}

int peer_region_live(struct peer_region *r)
{
	lock_take(&r->lock);
	if (r->failed) {
		log_line(LOG_LVL_WARN,
			"%s of %#" PRIx64 "+%#" PRIx64 " failed: peer client %s took it away",
			r->maker.in, r->request.addr, r->request.length, r->client->ops.name);
		peer_count(&r->client->stats, PEER_FAILED, 1);
		dismantle(r, &r->maker);
		return -EINVAL;
	}
	r->state = PEER_LIVE;
	peer_guest_remove(&r->guests, &r->maker);
	peer_changed(r);
	lock_drop(&r->lock);
	return 0;
}

void peer_region_abandon(struct peer_region *r)
{
	lock_take(&r->lock);
	peer_count(&r->client->stats, PEER_FAILED, 1);
	dismantle(r, &r->maker);
}

/* Whoever deregisters it comes in, as g.  Takes the lock; drops it if that is refused. */
static int come_in(struct peer_region *r, struct peer_guest *g, enum peer_role role)
{
	const struct peer_guest *self;

	lock_take(&r->lock);
	self = peer_guest_self(r->guests, PEER_ANY_ROLE);
	if (!self) {
		peer_guest_add(&r->guests, g, role, "ibv_dereg_mr");
		return 0;
	}
	peer_count(&r->client->stats, PEER_DEADLOCKS, 1);
	log_line(LOG_LVL_WARN, "peer client %s: ibv_dereg_mr of a region inside its own %s",
		r->client->ops.name, self->in);
	lock_drop(&r->lock);
	return -EDEADLK;
}

int peer_region_await_ops(struct peer_region *r)
{
	struct peer_guest g;
	int rc = come_in(r, &g, 0);

	if (rc)
		return rc;
	rc = peer_await(r, PEER_OP);
	peer_guest_remove(&r->guests, &g);
	lock_drop(&r->lock);
	return rc;
}

int peer_region_drop(struct peer_region *r)
{
	struct peer_guest g;
	int rc = come_in(r, &g, PEER_DROPS);

	return rc ? rc : dismantle(r, &g);
}

static bool enter(struct peer_region *r, struct peer_guest *op, const char *in)
{
	bool live;

	lock_take(&r->lock);
	live = r->state == PEER_LIVE;
	if (live)
		peer_guest_add(&r->guests, op, PEER_OP | PEER_RUNS, in);
	lock_drop(&r->lock);
	return live;
}

bool peer_region_enter(struct peer_region *r, struct peer_guest *op, const char *in)
{
	bool live = enter(r, op, in), passed = true;

	while (live && passed && peer_fork_begins()) {
		peer_region_leave(r, op);
		passed = peer_fork_pass();
		live = enter(r, op, in);
	}
	return live;
}

void peer_region_leave(struct peer_region *r, struct peer_guest *op)
{
	lock_take(&r->lock);
	peer_guest_remove(&r->guests, op);
	peer_changed(r);
	lock_drop(&r->lock);
}

void peer_region_goes_into(struct peer_region *r, struct peer_guest *op, const char *in)
{
	lock_take(&r->lock);
	op->in = in;
	lock_drop(&r->lock);
}

bool peer_region_is_gone(struct peer_region *r)
{
	bool gone;

	lock_take(&r->lock);
	gone = r->state > PEER_LIVE;
	lock_drop(&r->lock);
	return gone;
}

bool peer_region_is_live(struct peer_region *r)
{
	bool live;

	lock_take(&r->lock);
	live = r->state == PEER_LIVE;
	lock_drop(&r->lock);
	return live;
}
