// SPDX-License-Identifier: BSD-3-Clause
#include "peermem/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/lock.h"
#include "base/log.h"
#include "peermem/refused.h"

/* Of libibverbs.so.1. */
#define EXPORT __attribute__((visibility("default")))

enum { PAGE = 4096, KNOWN_FLAGS = WEFT_DMA_ANY_THREAD };

/* By bus address; they do not overlap, for each is address space that was reserved. */
static struct {
	struct lock lock;
	struct peer_window **at;
	size_t count, room;
} windows;

/* The first that ends behind bus. */
static size_t place_of(uint64_t bus)
{
	size_t lo = 0, hi = windows.count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (windows.at[mid]->bus + windows.at[mid]->length > bus)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* ---- adding ---- */

static const char *wrong(uint64_t bus, uint64_t len, unsigned flags, const struct weft_dma_ops *ops)
{
	if (!ops || ops->size < offsetof(struct weft_dma_ops, flush) || !ops->copy_to ||
		!ops->copy_from)
		return "it has no functions to copy";
	if (flags & ~(unsigned)KNOWN_FLAGS)
		return "unknown flags";
	if (!len || len > INT64_MAX || len % PAGE || bus % PAGE || bus + len < bus)
		return "its range is empty, wraps, or is not of whole pages of 4096 bytes";
	return NULL;
}

static int reserve(uint64_t *bus, uint64_t len)
{
	const int fixed = *bus ? MAP_FIXED_NOREPLACE : 0;
	void *want = (void *)(uintptr_t)*bus;
	void *got = mmap(
		want, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);

	if (got == MAP_FAILED)
		return errno == EEXIST ? -EEXIST : -ENOMEM;
	if (fixed && got != want) { /* a kernel that does not know the flag */
		munmap(got, len);
		return -EEXIST;
	}
	*bus = (uintptr_t)got;
	return 0;
}

static int make_room(void)
{
	size_t room = windows.room ? 2 * windows.room : 16;
	struct peer_window **at;

	if (windows.count < windows.room)
		return 0;
	at = realloc(windows.at, room * sizeof(struct peer_window *));
	if (!at)
		return -ENOMEM;
	windows.at = at;
	windows.room = room;
	return 0;
}

static int insert(struct peer_window *w)
{
	size_t i;
	int rc;

	lock_take(&windows.lock);
	rc = make_room();
	if (!rc) {
		i = place_of(w->bus);
		memmove(&windows.at[i + 1], &windows.at[i],
			(windows.count++ - i) * sizeof(struct peer_window *));
		windows.at[i] = w;
	}
	lock_drop(&windows.lock);
	return rc;
}

static int add(uint64_t *bus, uint64_t len, const struct peer_window *like)
{
	struct peer_window *w = malloc(sizeof *w);
	uint64_t at = *bus;
	int rc;

	if (!w)
		return -ENOMEM;
	*w = *like;
	rc = reserve(&at, len);
	if (rc) {
		free(w);
		return rc;
	}
	w->bus = at;
	w->length = len;
	rc = insert(w);
	if (rc) {
		munmap((void *)(uintptr_t)at, len);
		free(w);
		return rc;
	}
	*bus = at;
	return 0;
}

EXPORT int weft_dma_window_add(
	uint64_t *bus, uint64_t len, unsigned flags, const struct weft_dma_ops *ops, void *priv)
{
	const char *why = bus ? wrong(*bus, len, flags, ops) : "it has no place for its address";
	struct peer_window like = {.flags = flags, .priv = priv};
	const int saved = errno;
	int rc;

	if (why) {
		log_line(LOG_LVL_WARN, "DMA window refused: %s", why);
		peer_refused();
		return -EINVAL;
	}
	memcpy(&like.ops, ops, ops->size < sizeof like.ops ? ops->size : sizeof like.ops);
	rc = add(bus, len, &like);
	if (rc) {
		log_line(LOG_LVL_WARN, "DMA window of %#llx bytes at %#llx refused: %s",
			(unsigned long long)len, (unsigned long long)*bus, strerror(-rc));
		peer_refused();
	}
	errno = saved;
	return rc;
}

/* ---- removing ---- */

static int take_out(uint64_t bus, struct peer_window **out)
{
	size_t i;
	int rc = -ENOENT;

	lock_take(&windows.lock);
	i = place_of(bus);
	if (i < windows.count && windows.at[i]->bus == bus)
		rc = windows.at[i]->holds ? -EBUSY : 0;
	if (!rc) {
		*out = windows.at[i];
		windows.count--;
		memmove(&windows.at[i], &windows.at[i + 1],
			(windows.count - i) * sizeof(struct peer_window *));
	}
	lock_drop(&windows.lock);
	return rc;
}

EXPORT int weft_dma_window_del(uint64_t bus)
{
	struct peer_window *w;
	int rc = take_out(bus, &w);

	if (rc) {
		log_line(LOG_LVL_WARN, "DMA window at %#llx not removed: %s",
			(unsigned long long)bus,
			rc == -EBUSY ? "a region uses it" : "there is none");
		peer_refused();
		return rc;
	}
	munmap((void *)(uintptr_t)w->bus, w->length);
	free(w);
	return 0;
}

/* ---- for regions ---- */

int peer_window_get(uint64_t bus, uint64_t length, struct peer_window **out)
{
	struct peer_window *w = NULL;
	int rc = 0;
	size_t i;

	lock_take(&windows.lock);
	i = place_of(bus);
	if (i < windows.count && windows.at[i]->bus < bus + length)
		w = windows.at[i];
	if (w && (bus < w->bus || bus + length > w->bus + w->length))
		rc = -EINVAL;
	else if (w)
		w->holds++;
	lock_drop(&windows.lock);
	*out = rc ? NULL : w;
	return rc;
}

void peer_window_put(struct peer_window *w)
{
	if (!w)
		return;
	lock_take(&windows.lock);
	w->holds--;
	lock_drop(&windows.lock);
}

void peer_window_forked_child(void)
{
	const struct lock open = {.word = 0};

	windows.lock = open;
	windows.count = 0;
	/* Another thread may have been exchanging it for a larger one. */
	windows.at = NULL;
	windows.room = 0;
}
