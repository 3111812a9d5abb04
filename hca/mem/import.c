// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/import.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hca/exec/view_backing.h"
#include "hca/proc/peer.h"
#include "hca/proc/proc.h"
#include "pages/piece.h"
#include "pages/vma.h"

enum { KEY_SHIFT = 24 };

/* A mapping that was made at once; it ends when the last piece of it does. */
struct import {
	struct peer *owner;
	bool object;     /* of the owner's own, not in his arena */
	uint32_t record; /* in the owner's list; our own: key */
	unsigned pieces;
	struct import *dead; /* the next that has ended */
};

/* What is left of one. */
struct piece {
	struct piece *next;
	uint64_t lo, hi;
	uint64_t offset; /* of lo, in the owner's arena or object */
	struct import *of;
};

static struct {
	struct lock lock;
	struct piece *first;
} imports;

/*
 * How often this process maps its own exports itself, by the entry of the key.  One for each entry
 * of the region table, though few are exports: it is counted before it is known whether the export
 * still lives, so the counter may not lie in what is freed with it, nor where peers can write.
 * What is never used of it takes no memory.
 */
static _Alignas(PAGE_BYTES) _Atomic uint32_t own_maps[SEG_MRS];

static _Atomic uint32_t *own_maps_of(uint32_t key)
{
	return &own_maps[key_index(key)];
}

static uint64_t record_of(uint32_t key)
{
	return (uint64_t)key << KEY_SHIFT | proc_at()->attach_id;
}

bool import_any(uint32_t key)
{
	const struct seg *seg = proc_seg();
	uint32_t n = atomic_load_explicit(&seg->hdr.imports_used, memory_order_seq_cst);

	if (atomic_load_explicit(own_maps_of(key), memory_order_seq_cst))
		return true;
	for (uint32_t i = 0; i < n && i < SEG_IMPORTS; i++)
		if (atomic_load_explicit(&seg->import[i], memory_order_seq_cst) >> KEY_SHIFT == key)
			return true;
	return false;
}

/* ---- the owner's list ---- */

static int list_add(struct seg *seg, uint32_t key, uint32_t *record)
{
	for (uint32_t i = 0; i < SEG_IMPORTS; i++) {
		uint32_t used = atomic_load_explicit(&seg->hdr.imports_used, memory_order_relaxed);
		uint64_t none = 0;

		if (!atomic_compare_exchange_strong_explicit(&seg->import[i], &none, record_of(key),
			    memory_order_seq_cst, memory_order_relaxed))
			continue;
		while (used < i + 1 &&
			!atomic_compare_exchange_weak_explicit(&seg->hdr.imports_used, &used, i + 1,
				memory_order_seq_cst, memory_order_relaxed))
			;
		atomic_thread_fence(memory_order_seq_cst);
		*record = i;
		return 0;
	}
	return -ENOSPC;
}

/* Our own are only counted: nobody strikes them out, and there is no limit. */
static int record_add(struct import *i, uint32_t key)
{
	if (!i->owner->self)
		return list_add(i->owner->view.seg, key, &i->record);
	i->record = key;
	atomic_fetch_add_explicit(own_maps_of(key), 1, memory_order_seq_cst);
	return 0;
}

static void record_del(const struct import *i)
{
	if (i->owner->self)
		atomic_fetch_sub_explicit(own_maps_of(i->record), 1, memory_order_release);
	else
		atomic_store_explicit(
			&i->owner->view.seg->import[i->record], 0, memory_order_release);
}

/* ---- mapping ---- */

/* The owner's arena: an fd that stays the owner's, if it is the one that the handle is about. */
static int arena_of(const struct peer *p, uint64_t ino)
{
	int fd = p->self ? rdv_arena_fd() : p->view.arena ? p->view.arena->fd : -1;
	struct stat st;

	if (fd < 0 || (!p->self && !arena_fd_ok(p->view.arena)))
		return -EOPNOTSUPP;
	return fstat(fd, &st) || st.st_ino != ino ? -ESTALE : fd;
}

/* Where what is to be mapped lies: in the owner's arena, or in an object of his. */
struct far_place {
	uint64_t offset;
	uint32_t object; /* 0: the arena */
};

/* What the owner says of the export now; nothing of it is believed that could harm us. */
static int where(const struct seg *seg, const struct import_wish *w, struct far_place *p)
{
	const struct seg_mr *s = seg_mr_of((struct seg *)seg, w->handle->key);
	uint32_t key = w->handle->key, access, flags;
	uint64_t length;

	if (!key || atomic_load_explicit(&s->key, memory_order_acquire) != key)
		return -ESTALE;
	flags = s->flags;
	p->object = flags & MR_OBJECT ? s->backing : 0;
	p->offset = flags & MR_OBJECT ? s->offset : s->addr;
	length = s->length;
	access = s->access;
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&s->key, memory_order_relaxed) != key)
		return -ESTALE;
	/* No file is larger than an arena by far. */
	if (!(flags & MR_EXPORT) || (flags & MR_OBJECT && !p->object) || p->offset % PAGE_BYTES ||
		p->offset > ARENA_SIZE || length > ARENA_SIZE - p->offset ||
		length != w->handle->length)
		return -ESTALE;
	if (w->prot & PROT_WRITE && !(access & IBV_ACCESS_REMOTE_WRITE))
		return -EACCES;
	if (w->offset > length || w->length > length - w->offset)
		return -ENXIO;
	p->offset += w->offset;
	return 0;
}

/* What that is, to be mapped; o->fd is the caller's if there is an object. */
static int object_of(const struct peer *p, const struct far_place *at, int arena, struct backing *o)
{
	*o = (struct backing){.kind = BACKING_MEMFD, .fd = arena};
	return at->object ? view_backing_get(&p->view, at->object, o) : 0;
}

/* ---- pieces ---- */

/* With the lock held: forgets [lo, hi); what has ended goes on the list *dead. */
static uint64_t cut(uint64_t lo, uint64_t hi, bool unmap, struct import **dead)
{
	struct piece **at = &imports.first, *p;
	uint64_t bytes = 0;

	while ((p = *at)) {
		uint64_t from = p->lo > lo ? p->lo : lo, to = p->hi < hi ? p->hi : hi;
		struct piece *rest = NULL;

		if (from >= to) {
			at = &p->next;
			continue;
		}
		if (p->lo < from && to < p->hi) {
			rest = malloc(sizeof *rest);
			if (!rest)
				return 0;
			*rest = (struct piece){p->next, to, p->hi, p->offset + (to - p->lo), p->of};
			p->next = rest;
			p->hi = from;
			p->of->pieces++;
		} else if (p->lo < from) {
			p->hi = from;
		} else {
			p->offset += to - p->lo;
			p->lo = to;
		}
		if (unmap)
			munmap((void *)(uintptr_t)from, to - from);
		bytes += to - from;
		if (p->lo < p->hi) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		if (!--p->of->pieces) {
			p->of->dead = *dead;
			*dead = p->of;
		}
		free(p);
	}
	return bytes;
}

/* Without the lock: it may be the last that keeps the owner's segment mapped. */
static void bury(struct import *dead)
{
	while (dead) {
		struct import *i = dead;

		dead = i->dead;
		record_del(i);
		peer_put(i->owner);
		free(i);
	}
}

bool import_covers(uint64_t lo, uint64_t hi)
{
	bool found = false;

	lock_take(&imports.lock);
	for (const struct piece *p = imports.first; p && !found; p = p->next)
		found = p->lo < hi && lo < p->hi;
	lock_drop(&imports.lock);
	return found;
}

bool import_own(uint64_t lo, uint64_t hi, uint64_t *offset)
{
	const struct piece *p;

	lock_take(&imports.lock);
	for (p = imports.first;
		p && !(p->of->owner->self && !p->of->object && p->lo <= lo && hi <= p->hi);)
		p = p->next;
	if (p)
		*offset = p->offset + (lo - p->lo);
	lock_drop(&imports.lock);
	return p;
}

/* Takes over the reference and the record, if it succeeds. */
static int map_noted(const struct import_wish *w, const struct backing *o, uint64_t offset,
	struct import *i, struct piece *p, void **out)
{
	struct import *dead = NULL;
	int rc;

	lock_take(&imports.lock);
	/* The owner counts this mapping, and not that of a child. */
	rc = piece_map(o, offset, w->length, w->prot, w->placed, w->at, out);
	if (!rc) {
		uint64_t lo = (uintptr_t)*out;

		/* What lay there is gone. */
		cut(lo, lo + w->length, false, &dead);
		*p = (struct piece){imports.first, lo, lo + w->length, offset, i};
		imports.first = p;
		i->pieces = 1;
	}
	lock_drop(&imports.lock);
	bury(dead);
	return rc;
}

/* i is in the owner's list: once more, as it may have been taken away before he could see us. */
static int import_listed(
	const struct import_wish *w, int arena, struct import *i, struct piece *p, void **out)
{
	struct backing o;
	struct far_place at;
	int rc = where(i->owner->view.seg, w, &at);

	if (!rc)
		rc = object_of(i->owner, &at, arena, &o);
	if (rc)
		return rc;
	i->object = at.object;
	rc = map_noted(w, &o, at.offset, i, p, out);
	if (at.object && o.fd >= 0)
		close(o.fd);
	return rc;
}

static int import_from(struct peer *owner, const struct import_wish *w, void **out)
{
	struct import *i = calloc(1, sizeof *i);
	struct piece *p = calloc(1, sizeof *p);
	int fd = arena_of(owner, w->handle->arena);
	int rc = !i || !p ? -ENOMEM : fd < 0 ? fd : 0;
	struct far_place at;

	if (!rc)
		rc = view_dead(&owner->view) ? -ESTALE : where(owner->view.seg, w, &at);
	if (!rc) {
		i->owner = owner;
		rc = record_add(i, w->handle->key);
	}
	if (!rc) {
		rc = import_listed(w, fd, i, p, out);
		if (rc)
			record_del(i);
	}
	if (rc) {
		free(i);
		free(p);
	}
	return rc;
}

static bool sound(const struct import_wish *w)
{
	const struct export_handle *h = w->handle;
	uint64_t at = w->placed ? (uintptr_t)w->at : 0;

	return h->magic == EXPORT_MAGIC && !h->zero && w->length &&
	       !((w->offset | w->length | at) % PAGE_BYTES) && (!w->placed || at) &&
	       w->offset + w->length > w->offset && at + w->length > at &&
	       !(w->prot & ~(PROT_READ | PROT_WRITE));
}

int hca_import(const struct import_wish *w, void **out)
{
	int saved = errno, rc = -EINVAL;
	struct peer *owner;

	if (sound(w))
		rc = proc_attach(NULL);
	if (!rc)
		rc = peer_find_attach(w->handle->attach, &owner);
	if (rc == -ENOENT)
		rc = -ESTALE;
	if (!rc) {
		rc = import_from(owner, w, out);
		if (rc)
			peer_put(owner);
	}
	errno = saved;
	return rc;
}

int hca_unimport(void *at, uint64_t length)
{
	uint64_t lo = (uintptr_t)at;
	struct import *dead = NULL;
	int saved = errno;
	uint64_t bytes;

	if (!length || (lo | length) % PAGE_BYTES || lo + length < lo)
		return -EINVAL;
	lock_take(&imports.lock);
	bytes = cut(lo, lo + length, true, &dead);
	lock_drop(&imports.lock);
	bury(dead);
	errno = saved;
	return bytes ? 0 : -EINVAL;
}

void import_forked_child(void)
{
	/*
	 * Not by what the list says: another thread may have changed it while the kernel copied
	 * page after page.
	 */
	if (imports.first)
		madvise(own_maps, sizeof own_maps, MADV_DONTNEED);
	imports.first = NULL;
	atomic_store_explicit(&imports.lock.word, 0, memory_order_relaxed);
}
