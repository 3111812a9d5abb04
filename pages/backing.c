// SPDX-License-Identifier: BSD-3-Clause
#include "pages/backing.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/clock.h"
#include "pages/vma.h"

#define AGAIN_NS ((uint64_t)NSEC_PER_SEC)

/* ---- objects ---- */

uint64_t backing_ipc_ns(void)
{
	int saved = errno;
	struct stat st;
	uint64_t ino = stat("/proc/self/ns/ipc", &st) ? 0 : st.st_ino;

	errno = saved;
	return ino;
}

int64_t backing_whole_pages(uint64_t bytes)
{
	if (bytes > INT64_MAX - PAGE_BYTES)
		return -ENXIO;
	return (bytes + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
}

static int64_t memfd_bytes(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) || fstatfs(fd, &fs))
		return -ENXIO;
	/* Not on hugetlbfs, where a store may find no page. */
	if (!S_ISREG(st.st_mode) || fs.f_type != TMPFS_MAGIC)
		return -ENXIO;
	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return -EPERM;
	if (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE) ||
		(fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDWR)
		return -EACCES;
	return backing_whole_pages(st.st_size);
}

int64_t backing_sysv_bytes(const struct backing *b)
{
	struct shmid_ds ds;

	if (!b->ipc_ns || b->ipc_ns != backing_ipc_ns())
		return -EXDEV;
	if (shmctl(b->shmid, IPC_STAT, &ds))
		return errno == EACCES ? -EACCES : -ENXIO;
	return backing_whole_pages(ds.shm_segsz);
}

/* All of it, in one window. */
static int64_t sysv_bytes(const struct backing *b)
{
	int64_t bytes = backing_sysv_bytes(b);

	return bytes > (int64_t)BACKING_WINDOW ? -EFBIG : bytes;
}

int64_t backing_bytes(const struct backing *b)
{
	int saved = errno;
	int64_t bytes = b->kind == BACKING_MEMFD  ? memfd_bytes(b->fd)
			: b->kind == BACKING_SYSV ? sysv_bytes(b)
						  : -ENXIO;

	errno = saved;
	return bytes;
}

/* ---- windows ---- */

/*
 * Address space that is nobody's memory.  Without rights at first: mlockall(MCL_FUTURE) would fill
 * all of it.
 */
static char *reserve(uint64_t len)
{
	void *p = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	munlock(p, len);
	madvise(p, len, MADV_DONTDUMP);
	if (madvise(p, len, MADV_DONTFORK) == 0)
		return p;
	munmap(p, len);
	return NULL;
}

/* In one step: who loads or stores there meanwhile finds one or the other. */
static bool move_over(char *p, char *at, uint64_t len)
{
	return mremap(p, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at;
}

/* Puts pages of no meaning where something was shown.  False: that stays. */
static bool cover(char *at, uint64_t len)
{
	char *p = reserve(len);

	if (!p)
		return false;
	if (mprotect(p, len, PROT_READ | PROT_WRITE) == 0 && move_over(p, at, len))
		return true;
	munmap(p, len);
	return false;
}

static bool show_memfd(const struct backing *b, char *at, uint64_t len, uint64_t offset)
{
	char *p = mmap(NULL, len, PROT_NONE, MAP_SHARED | MAP_NORESERVE, b->fd, offset);

	if (p == MAP_FAILED)
		return false;
	munlock(p, len);
	madvise(p, len, MADV_DONTDUMP);
	if (madvise(p, len, MADV_DONTFORK) == 0 && mprotect(p, len, PROT_READ | PROT_WRITE) == 0 &&
		move_over(p, at, len))
		return true;
	munmap(p, len);
	return false;
}

static bool take_hugetlb(const struct vma_attr *a, void *arg)
{
	*(bool *)arg |= a->hugetlb;
	return true;
}

bool backing_is_plain(const char *at, uint64_t len)
{
	uint64_t lo = (uintptr_t)at;
	bool huge = false, known;
	struct vma_walk w;
	struct vma v;

	if (vma_walk_begin(&w, lo))
		return false;
	known = !vma_walk_next(&w, &v) && v.start == lo && v.end == lo + len;
	vma_walk_end(&w);
	if (!known || v.page_size)
		return known && v.page_size == PAGE_BYTES;
	return !vma_attrs(lo, lo + len, take_hugetlb, &huge) && !huge;
}

static bool show_sysv(const struct backing *b, char *at, uint64_t len)
{
	char *p = shmat(b->shmid, NULL, 0);

	if (p == (void *)-1)
		return false;
	madvise(p, len, MADV_DONTDUMP);
	if (backing_is_plain(p, len) && madvise(p, len, MADV_DONTFORK) == 0 &&
		move_over(p, at, len))
		return true;
	shmdt(p);
	return false;
}

/* With the lock held: the window that has the tag, or NULL. */
static struct backing_window *window_of(struct backing_map *m, uint64_t tag)
{
	for (unsigned n = 0; n < BACKING_WINDOWS; n++) {
		struct backing_window *w = &m->window[(tag + n) % BACKING_WINDOWS];

		if (atomic_load_explicit(&w->tag, memory_order_relaxed) == tag)
			return w;
	}
	return NULL;
}

static void *in_window(const struct backing_window *w, uint64_t offset, uint64_t len)
{
	uint64_t in = offset % BACKING_WINDOW;
	uint64_t bytes = atomic_load_explicit(&w->bytes, memory_order_relaxed);

	return in <= bytes && len <= bytes - in ? w->base + in : NULL;
}

void *backing_find(struct backing_map *m, uint32_t id, uint64_t offset, uint64_t len, bool *worth)
{
	uint64_t now = clock_coarse_ns();
	struct backing_window *w;
	void *p;

	lock_take(&m->lock);
	w = window_of(m, backing_tag(id, offset));
	p = w ? in_window(w, offset, len) : NULL;
	*worth = !p && now >= m->again_ns && (!w || now >= w->again_ns);
	lock_drop(&m->lock);
	return p;
}

/* Shows of the backing what the window lacks; what it shows already is in use. */
static bool extend(struct backing_window *w, uint64_t first, const struct backing *b)
{
	int64_t there = backing_bytes(b);
	uint64_t old = atomic_load_explicit(&w->bytes, memory_order_relaxed), now;

	if (there < 0 || (uint64_t)there <= first)
		return false;
	now = there - first < BACKING_WINDOW ? there - first : BACKING_WINDOW;
	if (now <= old)
		return false;
	if (b->kind == BACKING_SYSV ? !old && show_sysv(b, w->base, now)
				    : show_memfd(b, w->base + old, now - old, first + old)) {
		atomic_store_explicit(&w->bytes, now, memory_order_release);
		return true;
	}
	return false;
}

/* With the lock held: the window that has the tag, or one that may have it. */
static struct backing_window *take_window(struct backing_map *m, uint64_t tag)
{
	struct backing_window *w = window_of(m, tag), *first = &m->window[tag % BACKING_WINDOWS];

	if (w)
		return w;
	/* Best where backing_at() looks. */
	w = atomic_load_explicit(&first->tag, memory_order_relaxed) ? window_of(m, 0) : first;
	if (w && !w->base)
		w->base = reserve(BACKING_WINDOW);
	return w && w->base ? w : NULL;
}

void *backing_map(
	struct backing_map *m, uint32_t id, uint64_t offset, uint64_t len, const struct backing *b)
{
	uint64_t tag = backing_tag(id, offset);
	struct backing_window *w;
	int saved = errno;
	void *p = NULL;

	lock_take(&m->lock);
	w = take_window(m, tag);
	if (w) {
		w->again_ns = 0;
		p = in_window(w, offset, len);
		if (!p && b && extend(w, offset - offset % BACKING_WINDOW, b))
			p = in_window(w, offset, len);
		if (!p)
			w->again_ns = clock_coarse_ns() + AGAIN_NS;
		atomic_store_explicit(&w->tag, tag, memory_order_release);
	} else {
		m->again_ns = clock_coarse_ns() + AGAIN_NS;
	}
	lock_drop(&m->lock);
	errno = saved;
	return p;
}

static void hide(struct backing_window *w)
{
	uint64_t bytes = atomic_load_explicit(&w->bytes, memory_order_relaxed);

	atomic_store_explicit(&w->tag, 0, memory_order_relaxed);
	atomic_store_explicit(&w->bytes, 0, memory_order_relaxed);
	/* An owner that lies may still have us use it: there must be something. */
	if (bytes)
		cover(w->base, bytes);
}

void backing_sweep(struct backing_map *m, bool (*live)(uint32_t id, void *arg), void *arg)
{
	int saved = errno;

	lock_take(&m->lock);
	for (unsigned i = 0; i < BACKING_WINDOWS; i++) {
		struct backing_window *w = &m->window[i];
		uint64_t tag = atomic_load_explicit(&w->tag, memory_order_relaxed);

		if (tag && !live(tag >> 32, arg))
			hide(w);
	}
	lock_drop(&m->lock);
	errno = saved;
}

void backing_close(struct backing_map *m)
{
	for (unsigned i = 0; i < BACKING_WINDOWS; i++) {
		struct backing_window *w = &m->window[i];

		atomic_store_explicit(&w->tag, 0, memory_order_relaxed);
		if (w->base)
			munmap(w->base, BACKING_WINDOW);
		w->base = NULL;
	}
}
