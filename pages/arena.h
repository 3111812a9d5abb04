/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arena: one sparse memfd per process, made and sealed by weftd.  What the process has
 * converted of its memory lies in it at an offset equal to its virtual address, so that nothing
 * has to be allocated, neighbours merge into one mapping, and a peer computes where a byte is.
 * A peer maps windows of 1 GiB when it first needs them.  As the size is sealed, loads and stores
 * through a window never fault, whatever the owner does.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/atomic.h"
#include "base/lock.h"

#define ARENA_SIZE   (1ull << 47)
#define ARENA_WINDOW (1ull << 30)

enum { ARENA_WINDOWS = 64 };

struct arena_window {
	uint64_t first; /* offset it begins at; valid once base is there */
	char *_Atomic base;
};

/* An arena as one process maps it: of a peer, or its own, which is filled through it. */
struct arena {
	int fd; /* -1: none */
	dev_t dev;
	ino_t ino;
	bool full; /* no window more: the table is full, or the kernel refused one */
	struct lock lock;
	struct arena_window window[ARENA_WINDOWS];
};

/* Is it a memfd of small pages with the size and the seals of an arena?  0 or -EPROTO. */
int arena_check(int fd);

/* Checks fd and begins to use it; the fd stays the caller's.  -EPROTO. */
int arena_open(struct arena *a, int fd);

/* Unmaps all windows.  Nobody may be using them. */
void arena_close(struct arena *a);

/* True while the fd is open and what it was: a program may close our fds and reuse the number. */
bool arena_fd_ok(const struct arena *a);

/* Slow path of arena_at(): maps the window if need be; keeps errno. */
void *arena_map(struct arena *a, uint64_t offset);

/*
 * Where [offset, offset+len) of the arena is mapped, or NULL: it does not lie within one window,
 * or no window could be mapped.  A system call on the first use of a window alone.
 */
static inline void *arena_at(struct arena *a, uint64_t offset, uint64_t len)
{
	uint64_t in = offset % ARENA_WINDOW, first = offset - in;
	unsigned i = first / ARENA_WINDOW % ARENA_WINDOWS;
	char *base = atomic_load_explicit(&a->window[i].base, memory_order_acquire);

	if (offset >= ARENA_SIZE || len > ARENA_WINDOW - in)
		return NULL;
	if (__builtin_expect(base && a->window[i].first == first, 1))
		return base + in;
	return arena_map(a, offset);
}
