// SPDX-License-Identifier: BSD-3-Clause
#include "peermem/registry.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/at_open.h"
#include "base/log.h"
#include "peermem/fork.h"
#include "peermem/invalidate.h"
#include "peermem/refused.h"
#include "peermem/wait.h"
#include "peermem/window.h"

/* Of libibverbs.so.1. */
#define EXPORT __attribute__((visibility("default")))

enum { BUCKETS = 1024 };

/* The list changes with both locks held: either is enough to read it. */
static struct {
	struct lock asking; /* held over acquire, and nothing else of a client's */
	struct lock lock;   /* clients' regions and tickets; taken before a region's */
	struct peer_client *clients;
	struct peer_region *bucket[BUCKETS];
	uint32_t last;
	bool begun; /* a ticket was given */
	peer_watch_fn watch;
	void (*stays)(const char *why); /* of unregistering */
} registry;

static AT_OPEN_DATA _Atomic unsigned count; /* of clients */

/* Whose acquire this thread is in. */
static __thread const struct peer_client *asked __attribute__((tls_model("initial-exec")));

/* ---- registering ---- */

static struct peer_client **place_of(const void *handle)
{
	struct peer_client **at = &registry.clients;

	while (*at && *at != handle)
		at = &(*at)->next;
	return at;
}

/* At the end.  False: the name is taken. */
static bool append(struct peer_client *c)
{
	struct peer_client **at = &registry.clients;

	for (; *at; at = &(*at)->next)
		if (strcmp((*at)->ops.name, c->ops.name) == 0)
			return false;
	lock_take(&registry.lock);
	*at = c;
	lock_drop(&registry.lock);
	atomic_fetch_add_explicit(&count, 1, memory_order_release);
	return true;
}

void peer_registry_watch(peer_watch_fn watch, void (*refused)(const char *why))
{
	registry.watch = watch;
	registry.stays = refused;
}

EXPORT void *ib_register_peer_memory_client(
	const struct peer_memory_client *peer_client, invalidate_peer_memory *invalidate_callback)
{
	struct peer_client *c;
	bool added;

	if (asked) {
		log_line(LOG_LVL_WARN, "peer client refused: it registers inside acquire of %s",
			asked->ops.name);
		peer_refused();
		return NULL;
	}
	c = peer_client_copy(peer_client, invalidate_callback);
	if (c && invalidate_callback) /* before anybody can ask the client */
		*invalidate_callback = peer_invalidate;
	if (registry.watch)
		registry.watch(c, peer_client, invalidate_callback);
	if (!c) {
		peer_refused();
		return NULL;
	}
	peer_fork_watch();
	lock_take(&registry.asking);
	added = append(c);
	lock_drop(&registry.asking);
	if (added)
		return c;
	log_line(LOG_LVL_WARN, "peer client %s refused: the name is taken", c->ops.name);
	peer_refused();
	free(c);
	return NULL;
}

/* ---- asking ---- */

unsigned peer_registry_count(void)
{
	return atomic_load_explicit(&count, memory_order_acquire);
}

bool peer_registry_any(void)
{
	return peer_registry_count() > 0;
}

static unsigned bucket_of(uint64_t ticket)
{
	return ticket % BUCKETS;
}

static struct peer_region *by_ticket(uint64_t ticket)
{
	struct peer_region *r = registry.bucket[bucket_of(ticket)];

	while (r && r->ticket != ticket)
		r = r->next_ticket;
	return r;
}

/* In turn, so that a late callback does not meet another's; Weft's contexts are never 0. */
static uint64_t next_ticket(void)
{
	const struct peer_generation *row = peer_generation();

	do {
		registry.last = registry.begun ? registry.last + 1 : row->first_context;
		registry.begun = true;
	} while (registry.last < row->first_context || registry.last == UINT32_MAX ||
		 by_ticket(registry.last));
	return registry.last;
}

static void give_ticket(struct peer_region *r)
{
	struct peer_region **at;

	r->ticket = peer_generation()->no_context;
	if (!r->client->invalidates)
		return;
	r->ticket = next_ticket();
	at = &registry.bucket[bucket_of(r->ticket)];
	r->next_ticket = *at;
	*at = r;
	r->findable = true;
}

static void join(struct peer_region *r, struct peer_client *c, void *context)
{
	lock_take(&registry.lock);
	r->client = c;
	r->context = context;
	r->done = PEER_DID_ACQUIRE;
	r->next_of_client = c->regions;
	c->regions = r;
	c->refs++;
	give_ticket(r);
	lock_drop(&registry.lock);
}

static bool claims(const struct peer_client *c, const struct peer_request *q, void **context,
	struct peer_trace *t)
{
	int answer;

	*context = NULL;
	asked = c;
	answer = c->ops.acquire(q->addr, q->length, NULL, NULL, context);
	asked = NULL;
	peer_trace_answer(t, c->ops.name, answer);
	return peer_generation()->acquire_is_one ? answer == 1 : answer > 0;
}

static int ask_all(struct peer_region *r, struct peer_trace *t)
{
	void *context;

	for (struct peer_client *c = registry.clients; c; c = c->next) {
		if (!claims(c, &r->request, &context, t))
			continue;
		join(r, c, context);
		return 1;
	}
	return 0;
}

int peer_registry_claim(struct peer_region *r, struct peer_trace *t)
{
	int rc;

	if (asked) {
		peer_trace_fail(
			t, "acquire", "memory registered inside a client's acquire", -EDEADLK);
		return -EDEADLK;
	}
	lock_take(&registry.asking);
	rc = ask_all(r, t);
	lock_drop(&registry.asking);
	return rc;
}

/* ---- finding and leaving ---- */

static void say_stale(struct peer_client *c, const void *handle, uint64_t context)
{
	if (c)
		peer_count(&c->stats, PEER_STALE, 1);
	log_line(LOG_LVL_INFO, "callback of %s%s: context %#" PRIx64 " is no region of it",
		c        ? "peer client "
		: handle ? "an unknown handle"
			 : "the handle NULL",
		c ? c->ops.name : "", context);
}

struct peer_region *peer_registry_find(void *handle, uint64_t context, struct peer_guest *g)
{
	struct peer_client *c;
	struct peer_region *r;

	lock_take(&registry.lock);
	c = *place_of(handle);
	r = c ? by_ticket(context) : NULL;
	if (c)
		peer_count(&c->stats, PEER_FREE_CALLBACKS, 1);
	if (r && r->client != c)
		r = NULL;
	if (r) {
		lock_take(&r->lock);
		peer_guest_add(&r->guests, g, PEER_CALLBACK, "the callback");
		lock_drop(&r->lock);
	} else {
		say_stale(c, handle, context);
	}
	lock_drop(&registry.lock);
	return r;
}

static void hide(struct peer_region *r)
{
	struct peer_region **at = &registry.bucket[bucket_of(r->ticket)];

	if (!r->findable)
		return;
	while (*at != r)
		at = &(*at)->next_ticket;
	*at = r->next_ticket;
	r->findable = false;
}

void peer_registry_hide(struct peer_region *r)
{
	lock_take(&registry.lock);
	hide(r);
	lock_drop(&registry.lock);
}

/* With the lock held. */
static void put_client(struct peer_client *c)
{
	if (--c->refs == 0)
		free(c);
}

static bool is_empty(struct peer_region *r)
{
	bool empty;

	lock_take(&r->lock);
	empty = !r->guests;
	lock_drop(&r->lock);
	return empty;
}

static void part(struct peer_region *r)
{
	struct peer_client *c = r->client;
	struct peer_region **at = &c->regions;

	while (*at && *at != r)
		at = &(*at)->next_of_client;
	if (!*at)
		return; /* the parent's, and this thread forked inside it */
	*at = r->next_of_client;
	peer_wake(&c->changes);
	put_client(c);
}

bool peer_registry_left(struct peer_region *r)
{
	bool empty;

	lock_take(&registry.lock);
	empty = is_empty(r);
	if (empty)
		part(r);
	lock_drop(&registry.lock);
	return empty;
}

int peer_registry_each(int (*fn)(const struct peer_client *c, void *arg), void *arg)
{
	int rc = 0;

	lock_take(&registry.lock);
	for (struct peer_client *c = registry.clients; c && !rc; c = c->next)
		rc = fn(c, arg);
	lock_drop(&registry.lock);
	return rc;
}

static void show(
	struct peer_client *c, _Atomic uint64_t *(*place)(const char *name, const char *version))
{
	_Atomic uint64_t *to;

	if (atomic_load_explicit(&c->stats.mirror, memory_order_relaxed))
		return;
	to = place(c->ops.name, c->version);
	if (to)
		peer_stats_mirror(&c->stats, to);
}

void peer_registry_show(_Atomic uint64_t *(*place)(const char *name, const char *version))
{
	lock_take(&registry.lock);
	for (struct peer_client *c = registry.clients; c; c = c->next)
		show(c, place);
	lock_drop(&registry.lock);
}

/* ---- forks ---- */

static bool is_busy(struct peer_region *r)
{
	bool busy;

	lock_take(&r->lock);
	busy = peer_guest_other(r->guests, PEER_OP);
	lock_drop(&r->lock);
	return busy;
}

bool peer_registry_busy(void)
{
	bool busy = false;

	lock_take(&registry.lock);
	for (struct peer_client *c = registry.clients; c && !busy; c = c->next)
		for (struct peer_region *r = c->regions; r && !busy; r = r->next_of_client)
			busy = is_busy(r);
	lock_drop(&registry.lock);
	return busy;
}

/* A thread that forked inside it goes on alone. */
static void leave_to_parent(struct peer_region *r)
{
	const struct lock open = {.word = 0};

	r->lock = open;
	r->guests = NULL;
	r->findable = r->counted = r->pieces.held = false;
	r->state = PEER_DEAD; /* its windows are the parent's */
	r->done = 0;
}

/* Its references stay: a thread that forked inside a region still has one. */
static void start_over(struct peer_client *c)
{
	for (struct peer_region *r = c->regions; r; r = r->next_of_client)
		leave_to_parent(r);
	c->regions = NULL;
	peer_stats_reset(&c->stats);
}

void peer_registry_forked_child(void)
{
	const struct lock open = {.word = 0};

	registry.asking = registry.lock = open;
	memset(registry.bucket, 0, sizeof registry.bucket);
	for (struct peer_client *c = registry.clients; c; c = c->next)
		start_over(c);
	peer_window_forked_child();
}

/* ---- unregistering ---- */

/* The function of c that this thread is inside; NULL: none. */
static const char *inside(const struct peer_client *c)
{
	const char *in = NULL;

	for (struct peer_region *r = c->regions; r && !in; r = r->next_of_client) {
		const struct peer_guest *self;

		lock_take(&r->lock);
		self = peer_guest_self(r->guests, PEER_ANY_ROLE);
		in = self ? self->in : NULL;
		lock_drop(&r->lock);
	}
	return in;
}

static void refuse(const char *why)
{
	peer_refused();
	if (registry.stays)
		registry.stays(why);
}

/* NULL, and *why: it stays, or is unknown. */
static struct peer_client *take_off(void *handle, const char **why)
{
	struct peer_client **at = place_of(handle), *c = *at;
	const char *in = c ? inside(c) : NULL;

	if (!c)
		log_line(LOG_LVL_WARN, "an unknown handle is unregistered as peer client");
	if (in)
		log_line(LOG_LVL_ERROR, "peer client %s stays registered: it unregisters inside %s",
			c->ops.name, in);
	*why = in ? "inside one of its functions" : "its handle is no client's";
	if (!c || in)
		return NULL;
	*at = c->next;
	atomic_fetch_sub_explicit(&count, 1, memory_order_relaxed);
	return c;
}

static void wait_for_regions(struct peer_client *c)
{
	const struct peer_wait w = peer_wait_begin();

	lock_take(&registry.lock);
	while (c->regions && peer_waited(&w) < PEER_TELL_NS) {
		uint32_t seen = atomic_load_explicit(&c->changes, memory_order_relaxed);

		lock_drop(&registry.lock);
		peer_wait_more(&w, &c->changes, seen, PEER_TELL_NS);
		lock_take(&registry.lock);
	}
	lock_drop(&registry.lock);
}

static struct peer_region *next_to_evict(struct peer_client *c, struct peer_guest *g)
{
	struct peer_region *r;

	lock_take(&registry.lock);
	r = c->regions;
	while (r && r->evicted)
		r = r->next_of_client;
	if (r) {
		r->evicted = true;
		lock_take(&r->lock);
		peer_guest_add(&r->guests, g, PEER_CALLBACK, "ib_unregister_peer_memory_client");
		lock_drop(&r->lock);
	}
	lock_drop(&registry.lock);
	return r;
}

static void evict_all(struct peer_client *c)
{
	struct peer_guest g;
	unsigned n = 0;

	for (struct peer_region *r; (r = next_to_evict(c, &g)); n++)
		peer_evict(r, &g);
	if (n)
		log_line(LOG_LVL_WARN,
			"peer client %s unregistered with %u live regions: they are dead",
			c->ops.name, n);
}

EXPORT void ib_unregister_peer_memory_client(void *reg_handle)
{
	struct peer_client *c;
	const char *why;

	if (asked) {
		log_line(LOG_LVL_ERROR, "peer client refused to unregister inside acquire of %s",
			asked->ops.name);
		refuse("inside acquire");
		return;
	}
	lock_take(&registry.asking);
	lock_take(&registry.lock);
	c = take_off(reg_handle, &why);
	lock_drop(&registry.lock);
	lock_drop(&registry.asking);
	if (!c) {
		refuse(why);
		return;
	}
	wait_for_regions(c);
	evict_all(c);
	lock_take(&registry.lock);
	put_client(c);
	lock_drop(&registry.lock);
}
