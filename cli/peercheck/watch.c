// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/watch.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/user_mem.h"
#include "cli/peercheck/entries.h"
#include "cli/peercheck/forks.h"
#include "cli/peercheck/locks.h"
#include "cli/peercheck/record.h"
#include "cli/peercheck/subject.h"
#include "peermem/generation.h"
#include "peermem/registry.h"

static struct {
	pthread_mutex_t lock;
	struct watched_client client[WATCHED_CLIENTS];
	struct peer_memory_client was[WATCHED_CLIENTS]; /* *own, when it registered */
	unsigned clients;
	struct watched_region *regions;
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct watch_plan *_Atomic plan;
static __thread const char *function;
static __thread unsigned in_callback;

void watch_plan(const struct watch_plan *p)
{
	atomic_store_explicit(&plan, p, memory_order_release);
}

static const struct watch_plan *planned(void)
{
	return atomic_load_explicit(&plan, memory_order_acquire);
}

static void point(const char *name, bool after)
{
	const struct watch_plan *p = planned();

	forks_guard(function);
	if (p && p->point)
		p->point(name, after);
}

void watch_enter(const char *name)
{
	function = name;
}

const char *watch_function(void)
{
	return function;
}

/* ---- functions of the client, around each ---- */

static const char *enter(const char *name)
{
	const char *outer = function;

	point(name, false);
	forks_enter();
	function = name;
	locks_in_function(true);
	if (in_callback)
		strncpy(record_mine()->in, name, sizeof record_mine()->in - 1);
	return outer;
}

static void leave(const char *name, const char *outer)
{
	forks_leave(name);
	if (in_callback)
		record_mine()->in[0] = '\0';
	locks_in_function(outer);
	function = outer;
	point(name, true);
}

static void add_region(struct watched_region *r)
{
	pthread_mutex_lock(&seen.lock);
	r->next = seen.regions;
	seen.regions = r;
	pthread_mutex_unlock(&seen.lock);
}

/* The call that was to fail has failed. */
static bool has_failed(void)
{
	return record_family() == FAMILY_NTH && subject.kshim && subject.kshim->failed();
}

static void judge_ignoring(const char *name, bool failed_before, int rc)
{
	if (!rc && !failed_before && has_failed())
		record_broken(
			14, "no error", "a call that %s makes failed, and it answered 0", name);
}

static const char *forbidden;

void watch_forbid(const char *what)
{
	forbidden = what;
}

static int ask(struct watched_client *c, unsigned long addr, size_t size, void **context)
{
	unsigned call = record_begin("acquire(%#lx, %zu)", addr, size);
	const char *outer = enter("acquire");
	const bool failed = has_failed();
	int rc = c->ops.acquire(addr, size, NULL, NULL, context);

	leave("acquire", outer);
	record_end(call, " = %d", rc);
	if (rc != 0 && rc != 1)
		record_broken(3, "answer of acquire",
			"acquire answered %d, which is neither 0 nor 1", rc);
	judge_ignoring("acquire", failed, rc != 1);
	if (rc > 0 && forbidden)
		record_broken(3, "acquire", "acquire claims %s, %#lx+%zu", forbidden, addr, size);
	return rc;
}

static int acquire(unsigned i, unsigned long addr, size_t size, void **client_context)
{
	struct watched_region *r = calloc(1, sizeof *r);
	int rc;

	if (!r)
		abort();
	*r = (struct watched_region){.client = &seen.client[i], .addr = addr, .size = size};
	rc = ask(r->client, addr, size, &r->context);
	if (rc <= 0) {
		free(r);
		return rc;
	}
	add_region(r);
	*client_context = r;
	return rc;
}

/* acquire has nothing that says which client is asked: a function for each. */
#define ACQUIRE(i)                                                                                 \
	static int acquire_##i(                                                                    \
		unsigned long addr, size_t size, void *data, char *name, void **client_context)    \
	{                                                                                          \
		(void)data;                                                                        \
		(void)name;                                                                        \
		return acquire(i, addr, size, client_context);                                     \
	}

ACQUIRE(0)
ACQUIRE(1)
ACQUIRE(2)
ACQUIRE(3)
ACQUIRE(4)
ACQUIRE(5)
ACQUIRE(6)
ACQUIRE(7)

static int (*const acquires[WATCHED_CLIENTS])(
	unsigned long addr, size_t size, void *data, char *name, void **client_context) = {
	acquire_0, acquire_1, acquire_2, acquire_3, acquire_4, acquire_5, acquire_6, acquire_7};

static void judge_answer(const char *name, int rc)
{
	char sign[64];

	if (rc <= 0 && rc > -4096)
		return;
	snprintf(sign, sizeof sign, "answer of %s", name);
	record_broken(5, sign, "%s answered %d, which is neither 0 nor a negative errno", name, rc);
}

static int get_pages(unsigned long addr, size_t size, int write, int force,
	struct sg_table *sg_head, void *client_context, u64 core_context)
{
	struct watched_region *r = client_context;
	unsigned call = record_begin("get_pages(%#lx, %zu, %d, %d, %s, context %" PRIu64 ")", addr,
		size, write, force, sg_head ? "table" : "NULL", (uint64_t)core_context);
	const char *outer = enter("get_pages");
	const bool failed = has_failed();
	int rc;

	r->core = core_context;
	r->pinned = true;
	rc = r->client->ops.get_pages(addr, size, write, force, sg_head, r->context, core_context);
	leave("get_pages", outer);
	record_end(call, " = %d", rc);
	judge_answer("get_pages", rc);
	judge_ignoring("get_pages", failed, rc);
	return rc;
}

static int dma_map(struct sg_table *sg_head, void *client_context, struct device *dma_device,
	int dmasync, int *nmap)
{
	struct watched_region *r = client_context;
	unsigned call = record_begin("dma_map(table, %d)", dmasync);
	const char *outer = enter("dma_map");
	const bool failed = has_failed();
	int rc = r->client->ops.dma_map(sg_head, r->context, dma_device, dmasync, nmap);

	leave("dma_map", outer);
	record_end(call, " = %d, nmap %d", rc, *nmap);
	judge_answer("dma_map", rc);
	judge_ignoring("dma_map", failed, rc);
	if (!rc) {
		r->table = sg_head;
		entries_judge(r, *nmap);
	}
	return rc;
}

static int dma_unmap(struct sg_table *sg_head, void *client_context, struct device *dma_device)
{
	struct watched_region *r = client_context;
	unsigned call = record_begin("dma_unmap(table)");
	const char *outer = enter("dma_unmap");
	int rc;

	r->table = NULL;
	rc = r->client->ops.dma_unmap(sg_head, r->context, dma_device);
	leave("dma_unmap", outer);
	record_end(call, " = %d", rc);
	if (rc)
		record_broken(12, "answer of dma_unmap", "dma_unmap answered %d, not 0", rc);
	return rc;
}

static void put_pages(struct sg_table *sg_head, void *client_context)
{
	struct watched_region *r = client_context;
	unsigned call = record_begin("put_pages(table)");
	const char *outer = enter("put_pages");

	r->table = NULL;
	r->client->ops.put_pages(sg_head, r->context);
	leave("put_pages", outer);
	record_end(call, "%s", "");
}

static bool is_page_size(unsigned long n)
{
	return n >= 4096 && (n & (n - 1)) == 0;
}

static void judge_page_size(struct watched_region *r, unsigned long n)
{
	if (!is_page_size(n))
		record_broken(10, "page size",
			"get_page_size answered %lu, which is no power of two from 4096 on", n);
	else if (r->page_size && r->page_size != n)
		record_broken(10, "page size", "get_page_size answered %lu, and then %lu",
			r->page_size, n);
	r->page_size = n;
}

static unsigned long ask_page_size(struct watched_region *r)
{
	unsigned call = record_begin("get_page_size()");
	const char *outer = enter("get_page_size");
	unsigned long n = r->client->ops.get_page_size(r->context);

	leave("get_page_size", outer);
	record_end(call, " = %lu", n);
	judge_page_size(r, n);
	if (r->table)
		entries_judge_cover(r);
	return n;
}

/* Twice: it must not change. */
static unsigned long get_page_size(void *client_context)
{
	ask_page_size(client_context);
	return ask_page_size(client_context);
}

static void release(void *client_context)
{
	struct watched_region *r = client_context;
	unsigned call = record_begin("release()");
	const char *outer = enter("release");

	r->released = true;
	r->client->ops.release(r->context);
	leave("release", outer);
	record_end(call, "%s", "");
}

/* ---- the callback ---- */

static struct watched_region *find_region(const struct watched_client *c, uint64_t core)
{
	struct watched_region *r;

	pthread_mutex_lock(&seen.lock);
	r = seen.regions;
	while (r && (!r->pinned || r->core != core || (c && r->client != c)))
		r = r->next;
	pthread_mutex_unlock(&seen.lock);
	return r;
}

static struct watched_client *find_client(const void *handle)
{
	for (unsigned i = 0; i < seen.clients; i++)
		if (seen.client[i].of == handle)
			return &seen.client[i];
	return NULL;
}

static void judge_callback(const struct watched_client *c, struct watched_region *r, uint64_t core)
{
	const struct watch_plan *p = planned();

	if (!c)
		record_broken(15, "handle", "the callback got a handle that is no client's");
	else if (!r)
		record_broken(15, "context",
			"the callback got context %" PRIu64 ", which no region of the client has",
			core);
	else if (r->released && !(p && p->late_is_fine))
		record_broken(15, "context",
			"the callback got context %" PRIu64 " of a region that was released", core);
	else if (++r->told > 1)
		record_broken(16, "told twice",
			"the region with context %" PRIu64 " was invalidated twice", core);
}

static int deliver(void *handle, uint64_t core)
{
	const struct watched_client *c = find_client(handle);
	const struct watched_client *any = c ? c : &seen.client[0];
	const char *outer = function;
	int rc;

	function = "the callback";
	in_callback++;
	rc = any->callback ? any->callback(handle, core) : 0;
	in_callback--;
	function = outer;
	return rc;
}

static int callback(void *reg_handle, u64 core_context)
{
	struct watched_client *c = find_client(reg_handle);
	struct watched_region *r = find_region(c, core_context);
	const struct watch_plan *p = planned();
	unsigned call;
	int rc;

	forks_guard(function);
	call = record_begin("invalidate(%s, context %" PRIu64 ")",
		c ? "its handle" : "another handle", (uint64_t)core_context);
	judge_callback(c, r, core_context);
	locks_over_callback();
	if (p && p->callback)
		p->callback(r);
	rc = deliver(reg_handle, core_context);
	if (r && r->client->of->unmaps)
		r->table = NULL; /* the client undoes it by itself now */
	record_end(call, " = %d", rc);
	return rc;
}

/* ---- clients that register ---- */

static void judge_name(const struct peer_memory_client *own)
{
	if (!memchr(own->name, 0, sizeof own->name) || !*own->name)
		record_broken(1, "name", "its name is empty or not terminated");
	else if (!memchr(own->version, 0, sizeof own->version))
		record_broken(1, "version", "its version is not terminated");
	for (unsigned i = 0; i < seen.clients; i++)
		if (strncmp(seen.was[i].name, own->name, sizeof own->name) == 0)
			record_broken(1, "name", "a second client registers as %.64s", own->name);
}

static void exchange(struct peer_memory_client *ops, unsigned i)
{
	ops->acquire = acquires[i];
	ops->get_pages = get_pages;
	ops->dma_map = dma_map;
	ops->dma_unmap = dma_unmap;
	ops->put_pages = put_pages;
	ops->get_page_size = ops->get_page_size ? get_page_size : NULL;
	ops->release = ops->release ? release : NULL;
}

static void registers(
	struct peer_client *c, const struct peer_memory_client *own, invalidate_peer_memory *wanted)
{
	struct watched_client *w = &seen.client[seen.clients];

	forks_guard(function);
	if (seen.clients == WATCHED_CLIENTS)
		return;
	record_note("ib_register_peer_memory_client(\"%.40s\", %s)%s", own->name,
		wanted ? "a callback" : "no callback", c ? "" : ": refused");
	judge_name(own);
	if (!c) {
		record_broken(1, "refused",
			"its registration is refused: a function is missing, or "
			"the name is no name of a file");
		return;
	}
	*w = (struct watched_client){.of = c, .ops = c->ops, .own = own};
	seen.was[seen.clients] = *own;
	exchange(&c->ops, seen.clients);
	if (wanted) {
		w->callback = *wanted;
		*wanted = callback;
		record_mine()->may_take = true;
	}
	if (!seen.clients++)
		snprintf(record_mine()->client, sizeof record_mine()->client, "%.63s %.15s",
			own->name, c->version);
}

static void unregisters_in_vain(const char *why)
{
	forks_guard(function);
	record_note("ib_unregister_peer_memory_client(): refused, %s", why);
	record_broken(2, "unregistered", "it unregisters in vain: %s", why);
}

void watch_begin(void)
{
	peer_registry_watch(registers, unregisters_in_vain);
}

unsigned watch_clients(void)
{
	return seen.clients;
}

const struct watched_client *watch_client(unsigned i)
{
	return i < seen.clients ? &seen.client[i] : NULL;
}

const struct watched_region *watch_regions(void)
{
	return seen.regions;
}

/* MLNX_OFED's core uses the client's structure, all the time; Weft's has a copy. */
static void judge_structure(unsigned i)
{
	struct peer_memory_client is;

	if (user_get(&is, (uintptr_t)seen.client[i].own, sizeof is))
		record_broken(1, "structure", "its structure is gone after it registered");
	else if (memcmp(&is, &seen.was[i], sizeof is) != 0)
		record_broken(1, "structure", "its structure changed after it registered");
}

void watch_judge(void)
{
	const char *lock = locks_both();

	for (unsigned i = 0; i < seen.clients && peer_generation()->letter != 'W'; i++)
		judge_structure(i);
	if (lock)
		record_broken(18, "lock",
			"%s is held while the callback runs, and a function of the client takes it",
			lock);
}

/* ---- what the shim tells ---- */

static void shim_point(const char *call, bool after)
{
	if (!after)
		record_note("%s", call);
	point(call, after);
}

static void shim_lock(const void *lock, const char *name, enum kshim_lock_use use)
{
	const struct watch_plan *p = planned();

	if (use == KSHIM_LOCK_AGAIN)
		record_broken(in_callback ? 18 : 22, "lock again",
			"%s takes %s, which it holds already", function ? function : "a thread",
			name);
	else if (use == KSHIM_LOCK_WAITS && p && p->waits)
		p->waits();
	else
		locks_use(lock, name, use);
}

static void shim_freed(const void *at, size_t n)
{
	pthread_mutex_lock(&seen.lock);
	for (struct watched_region *r = seen.regions; r; r = r->next) {
		const char *list = r->table ? (const char *)r->table->sgl : NULL;

		if (list && list >= (const char *)at && list < (const char *)at + n)
			record_broken(11, "table freed",
				"the entries of a mapped table were freed before dma_unmap");
	}
	pthread_mutex_unlock(&seen.lock);
}

static void shim_wrong(enum kshim_wrong which, const char *text)
{
	record_note("wrong: %s", text);
	record_seen(which == KSHIM_STALE ? SEEN_STALE : SEEN_MEMORY, function, "%s, in %s", text,
		function ? function : "a callback of the device");
}

const struct kshim_watch watch_of_shim = {
	.point = shim_point, .lock = shim_lock, .freed = shim_freed, .wrong = shim_wrong};
