/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Backings: memory that a program of its own accord shares by an object which others can map too,
 * a memfd or a System V segment.  A peer maps windows of it where it likes, and reaches a byte by
 * its offset in the object.
 *
 * Only an object that cannot become shorter is mapped, and whoever maps one looks for himself:
 * then no load or store through a window can fault, whatever the owner of the region does.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/lock.h"

#define BACKING_WINDOW (1ull << 30)

enum { BACKING_WINDOWS = 64 };

enum backing_kind { BACKING_MEMFD = 1, BACKING_SYSV };

/* An object, as it can be mapped. */
struct backing {
	enum backing_kind kind;
	int fd;          /* BACKING_MEMFD */
	int shmid;       /* BACKING_SYSV, in ... */
	uint64_t ipc_ns; /* backing_ipc_ns() of who named it */
};

/* The inode of our namespace of System V objects; 0: not known, which equals nobody's. */
uint64_t backing_ipc_ns(void);

/* So many bytes, as whole pages; -ENXIO: more than any object has. */
int64_t backing_whole_pages(uint64_t bytes);

/*
 * How many bytes a System V segment has, whole pages.  -EXDEV: it is in another namespace; -EACCES:
 * it may not be looked at; -ENXIO: there is none.
 */
int64_t backing_sysv_bytes(const struct backing *b);

/*
 * How many bytes from its start on are there and stay, whole pages, for one who loads and stores.
 * -EPERM: it can become shorter; -EACCES: it cannot be written; -EXDEV: it is in another namespace;
 * -EFBIG: a System V segment larger than a window; -ENXIO: huge pages, or no such object.  Keeps
 * errno.
 */
int64_t backing_bytes(const struct backing *b);

/*
 * Is what was attached of that length, and of small pages?  Under its number there may be another
 * segment by now than the one that was looked at.
 */
bool backing_is_plain(const char *at, uint64_t len);

/*
 * A window as a peer maps it.  Its gigabyte of address space stays its own until all end, and
 * where it ever showed something it stays readable and writable: an owner that lies may take away
 * what is in use.
 */
struct backing_window {
	_Atomic uint64_t tag; /* id of the backing << 32 | number of the window; 0: shows none */
	char *base;
	_Atomic uint64_t bytes; /* of the backing, from base on */
	uint64_t again_ns;      /* it could not be mapped: try again then */
};

/* The windows onto the backings of one peer, which has given them ids. */
struct backing_map {
	struct lock lock;
	uint64_t again_ns; /* there was no window to be had: try again then */
	_Atomic uint64_t
		asked_ns; /* when it was last not, or again, known what to map; 0: always */
	struct backing_window window[BACKING_WINDOWS];
};

static inline uint64_t backing_tag(uint32_t id, uint64_t offset)
{
	return (uint64_t)id << 32 | offset / BACKING_WINDOW;
}

/*
 * Where [offset, offset+len) of backing id is mapped, or NULL: ask backing_find().  No system
 * call.
 */
static inline void *backing_at(struct backing_map *m, uint32_t id, uint64_t offset, uint64_t len)
{
	uint64_t tag = backing_tag(id, offset), in = offset % BACKING_WINDOW;
	struct backing_window *w = &m->window[tag % BACKING_WINDOWS];
	uint64_t bytes;

	if (atomic_load_explicit(&w->tag, memory_order_acquire) != tag)
		return NULL;
	bytes = atomic_load_explicit(&w->bytes, memory_order_acquire);
	return in <= bytes && len <= bytes - in ? w->base + in : NULL;
}

/*
 * The same wherever the window came to lie.  *worth: it is not there, but mapping it may help; not
 * if that has just failed.
 */
void *backing_find(struct backing_map *m, uint32_t id, uint64_t offset, uint64_t len, bool *worth);

/*
 * Maps the window of offset, or what has been added to it since, and answers as backing_find().
 * b NULL: the object cannot be had, which is remembered for a second.  Keeps errno; b->fd stays
 * the caller's.
 */
void *backing_map(
	struct backing_map *m, uint32_t id, uint64_t offset, uint64_t len, const struct backing *b);

/*
 * Lets go of the backings that are not live any more.  Who still uses such a window meets pages
 * that nobody sees.
 */
void backing_sweep(struct backing_map *m, bool (*live)(uint32_t id, void *arg), void *arg);

/* Unmaps all windows.  Nobody may be using them. */
void backing_close(struct backing_map *m);
