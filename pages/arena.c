// SPDX-License-Identifier: BSD-3-Clause
#include "pages/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/sparse.h"

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

int arena_check(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS), saved = errno;
	struct statfs fs;
	struct stat st;
	bool ok;

	/* Not on hugetlbfs, where a store may find no page. */
	ok = seals >= 0 && (seals & SEALS) == SEALS && fstat(fd, &st) == 0 &&
	     (uint64_t)st.st_size == ARENA_SIZE && fstatfs(fd, &fs) == 0 &&
	     fs.f_type == TMPFS_MAGIC;
	errno = saved;
	return ok ? 0 : -EPROTO;
}

int arena_open(struct arena *a, int fd)
{
	int rc = arena_check(fd);
	struct stat st;

	*a = (struct arena){.fd = -1};
	if (rc || fstat(fd, &st))
		return -EPROTO;
	a->fd = fd;
	a->dev = st.st_dev;
	a->ino = st.st_ino;
	return 0;
}

void arena_close(struct arena *a)
{
	for (unsigned i = 0; i < ARENA_WINDOWS; i++) {
		char *base = atomic_load_explicit(&a->window[i].base, memory_order_relaxed);

		if (base)
			munmap(base, ARENA_WINDOW);
		atomic_store_explicit(&a->window[i].base, NULL, memory_order_relaxed);
	}
	a->fd = -1;
}

bool arena_fd_ok(const struct arena *a)
{
	struct stat st;

	return a->fd >= 0 && fstat(a->fd, &st) == 0 && st.st_dev == a->dev && st.st_ino == a->ino;
}

/*
 * Windows go far from where mmap(2) puts what the program maps: beside that, each would push the
 * next of it into a GiB of its own, for which another window is needed.  A hint: where the place is
 * taken, or does not exist, the kernel chooses.
 */
static void *hint(void)
{
	enum { PLACES = 16384 };
	static const uint64_t base = 1ull << 45;
	static _Atomic uint64_t used;
	uint64_t n = atomic_fetch_add_explicit(&used, 1, memory_order_relaxed);

	return (void *)(uintptr_t)(base + n % PLACES * ARENA_WINDOW);
}

/* With all rights only at the end: under mlockall(MCL_FUTURE) it would be filled at once. */
static char *map_window(const struct arena *a, uint64_t first)
{
	void *p = mmap(hint(), ARENA_WINDOW, PROT_NONE, MAP_SHARED | MAP_NORESERVE, a->fd, first);

	if (p == MAP_FAILED)
		return NULL;
	munlock(p, ARENA_WINDOW);
	madvise(p, ARENA_WINDOW, MADV_DONTDUMP);
	if (madvise(p, ARENA_WINDOW, MADV_DONTFORK) == 0 &&
		mprotect(p, ARENA_WINDOW, sparse_prot()) == 0)
		return p;
	munmap(p, ARENA_WINDOW);
	return NULL;
}

/* With the lock held: the window's entry, or the free one it may have, or NULL. */
static struct arena_window *entry_of(struct arena *a, uint64_t first)
{
	for (unsigned n = 0; n < ARENA_WINDOWS; n++) {
		struct arena_window *w = &a->window[(first / ARENA_WINDOW + n) % ARENA_WINDOWS];

		if (!atomic_load_explicit(&w->base, memory_order_acquire) || w->first == first)
			return w;
	}
	return NULL;
}

void *arena_map(struct arena *a, uint64_t offset)
{
	uint64_t in = offset % ARENA_WINDOW, first = offset - in;
	struct arena_window *w;
	int saved = errno;
	char *base = NULL;

	lock_take(&a->lock);
	w = entry_of(a, first);
	if (w)
		base = atomic_load_explicit(&w->base, memory_order_relaxed);
	if (w && !base && !a->full && arena_fd_ok(a)) {
		base = map_window(a, first);
		w->first = first;
		atomic_store_explicit(&w->base, base, memory_order_release);
	}
	if (!base)
		a->full = true;
	lock_drop(&a->lock);
	errno = saved;
	return base ? base + in : NULL;
}
