// SPDX-License-Identifier: BSD-3-Clause
/*
 * Under a checker each object ends at a page that nobody may touch, and becomes such pages when it
 * is freed: a use behind its end or after its end is a SIGSEGV at the place.  Otherwise it is
 * malloc().
 */
#include "kshim/slab.h"

#include <linux/slab.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kshim/hook.h"

enum { PAGE = 4096, BUCKETS = 1024, FILLER = 0xc3, FRESH = 0x5a, GRAIN = 8 };

struct object {
	struct object *next;
	char *map, *at; /* pages, the last of them a guard; the object */
	size_t map_size, size;
	bool freed, quiet;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *bucket[BUCKETS];
static _Atomic long objects;

/* ---- finding ---- */

static struct object **bucket_of(const void *page)
{
	return &bucket[(uintptr_t)page / PAGE % BUCKETS];
}

/* By the very address that was given out. */
static struct object *find(const void *at)
{
	struct object *o;

	pthread_mutex_lock(&lock);
	o = *bucket_of(at);
	while (o && o->at != at)
		o = o->next;
	pthread_mutex_unlock(&lock);
	return o;
}

static void enter(struct object *o)
{
	struct object **to = bucket_of(o->at);

	pthread_mutex_lock(&lock);
	o->next = *to;
	*to = o;
	pthread_mutex_unlock(&lock);
}

static const char *describe(const struct object *o, const char *at)
{
	if (at < o->map || at >= o->map + o->map_size)
		return NULL;
	if (o->freed)
		return "memory that was freed";
	return at < o->at + o->size ? NULL : "behind the end of an object";
}

const char *slab_about(const void *at)
{
	const char *text = NULL;

	/* Called where the program has crashed, maybe with the lock held: without it. */
	for (size_t i = 0; i < BUCKETS && !text; i++)
		for (const struct object *o = bucket[i]; o && !text; o = o->next)
			text = describe(o, at);
	return text;
}

long slab_objects(void)
{
	return atomic_load_explicit(&objects, memory_order_relaxed);
}

/* ---- guarded ---- */

static void *guarded(size_t n, bool quiet)
{
	const size_t room = (n + GRAIN - 1) & ~(size_t)(GRAIN - 1);
	const size_t pages = (room + PAGE - 1) / PAGE + !room;
	struct object *o = calloc(1, sizeof *o);
	char *map;

	if (!o)
		return NULL;
	map = mmap(NULL, (pages + 1) * PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED) {
		free(o);
		return NULL;
	}
	mprotect(map + pages * PAGE, PAGE, PROT_NONE);
	*o = (struct object){.map = map, .map_size = (pages + 1) * PAGE, .size = n, .quiet = quiet};
	o->at = map + pages * PAGE - room;
	memset(o->at, FRESH, n);
	memset(o->at + n, FILLER, room - n);
	enter(o);
	return o->at;
}

static bool filler_is_whole(const struct object *o)
{
	const char *end = o->map + o->map_size - PAGE;

	for (const char *p = o->at + o->size; p < end; p++)
		if ((unsigned char)*p != FILLER)
			return false;
	return true;
}

static bool free_guarded(void *p)
{
	struct object *o = find(p);

	if (!o || o->freed)
		return false;
	if (!filler_is_whole(o))
		hook_wrong(KSHIM_MEMORY, "kfree: written behind the end of the object");
	o->freed = true;
	hook_freed(o->at, o->size);
	mprotect(o->map, o->map_size, PROT_NONE);
	return true;
}

/* ---- calls ---- */

static void *allocate(size_t n, const char *call)
{
	void *p = NULL;

	if (!hook_before(call))
		p = hook_is_watched() ? guarded(n, false) : malloc(n ? n : 1);
	if (p)
		atomic_fetch_add_explicit(&objects, 1, memory_order_relaxed);
	hook_after(call, 0);
	return p;
}

static void *zeroed(size_t n, const char *call)
{
	void *p = allocate(n, call);

	return p ? memset(p, 0, n) : NULL;
}

KSHIM_EXPORT void *kmalloc(size_t n, gfp_t flags)
{
	return flags & __GFP_ZERO ? zeroed(n, "kmalloc") : allocate(n, "kmalloc");
}

KSHIM_EXPORT void *kzalloc(size_t n, gfp_t flags)
{
	(void)flags;
	return zeroed(n, "kzalloc");
}

KSHIM_EXPORT void *kcalloc(size_t n, size_t size, gfp_t flags)
{
	size_t all;

	(void)flags;
	return __builtin_mul_overflow(n, size, &all) ? NULL : zeroed(all, "kcalloc");
}

KSHIM_EXPORT void *kmalloc_array(size_t n, size_t size, gfp_t flags)
{
	size_t all;

	return __builtin_mul_overflow(n, size, &all) ? NULL : kmalloc(all, flags);
}

static void *reallocate(const void *p, size_t n)
{
	void *to = hook_before("krealloc") ? NULL : realloc((void *)p, n ? n : 1);

	hook_after("krealloc", 0);
	return to;
}

KSHIM_EXPORT void *krealloc(const void *p, size_t n, gfp_t flags)
{
	const struct object *o;
	void *to;

	if (p && !hook_is_watched())
		return reallocate(p, n);
	o = p ? find(p) : NULL;
	to = kmalloc(n, flags);
	if (!to || !o)
		return to;
	memcpy(to, p, o->size < n ? o->size : n);
	kfree(p);
	return to;
}

KSHIM_EXPORT char *kstrdup(const char *s, gfp_t flags)
{
	const size_t n = strlen(s) + 1;
	char *to = kmalloc(n, flags);

	return to ? memcpy(to, s, n) : NULL;
}

KSHIM_EXPORT void kfree(const void *p)
{
	if (!p)
		return;
	if (!hook_is_watched()) {
		free((void *)p);
	} else if (!free_guarded((void *)p)) {
		hook_wrong(KSHIM_MEMORY, "kfree of what is no object, or was freed before");
		return;
	}
	atomic_fetch_sub_explicit(&objects, 1, memory_order_relaxed);
}

void *slab_quiet_alloc(size_t n)
{
	void *p = hook_is_watched() ? guarded(n, true) : malloc(n);

	return p ? memset(p, 0, n) : NULL;
}

void slab_quiet_free(void *p)
{
	if (!hook_is_watched())
		free(p);
	else
		free_guarded(p);
}
