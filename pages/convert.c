// SPDX-License-Identifier: BSD-3-Clause
#include "pages/convert.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/log.h"
#include "base/own_fd.h"
#include "base/sparse.h"
#include "pages/populate.h"
#include "pages/uffd.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif

enum {
	STACK_BELOW = 64 * 1024, /* that a leaf section may use */
	STACK_ABOVE = 8 * 1024,
	THREAD_BYTES = 2560, /* glibc's record of a thread, which the kernel writes too (rseq) */
	KERNEL_SIGSET_BYTES = 8
};

static const int rw = PROT_READ | PROT_WRITE;

/* ---- leaf sections ---- */

static void signals_block(uint64_t *old)
{
	uint64_t all = ~0ull;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, old, KERNEL_SIGSET_BYTES);
}

static void signals_restore(const uint64_t *old)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, old, NULL, KERNEL_SIGSET_BYTES);
}

/* Reads what is next to registered memory too: not for a sanitizer to judge. */
#define WHOLE_PAGE __attribute__((noinline, no_sanitize_address, no_sanitize_thread))

/* Not memcpy(), which may be anybody's. */
WHOLE_PAGE static void copy_page(uint64_t *to, const uint64_t *from)
{
	for (unsigned i = 0; i < PAGE_BYTES / sizeof *to; i += 8) {
		for (unsigned k = i; k < i + 8; k++)
			to[k] = from[k];
		__asm__ __volatile__("" ::: "memory");
	}
}

WHOLE_PAGE static bool page_is_zero(const uint64_t *p)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < PAGE_BYTES / sizeof *p && !sum; i += 8)
		for (unsigned k = i; k < i + 8; k++)
			sum |= p[k];
	return !sum;
}

static int map_at(uint64_t at, uint64_t len, int flags, int fd, uint64_t offset)
{
	/* Never touches errno when it succeeds. */
	long p = syscall(SYS_mmap, at, len, rw, flags | MAP_FIXED, fd, offset);

	return p == -1 ? -errno : 0;
}

static int protect(int uffd, uint64_t at, uint64_t len)
{
	struct uffdio_register reg = {
		.range = {.start = at, .len = len}, .mode = UFFDIO_REGISTER_MODE_WP};
	struct uffdio_writeprotect wp = {
		.range = {.start = at, .len = len}, .mode = UFFDIO_WRITEPROTECT_MODE_WP};

	if (syscall(SYS_ioctl, uffd, UFFDIO_REGISTER, &reg))
		return -errno;
	return syscall(SYS_ioctl, uffd, UFFDIO_WRITEPROTECT, &wp) ? -errno : 0;
}

/* Lets the writers go on: to the new pages, or if nothing came of it to the old ones. */
static void release(int uffd, uint64_t at, uint64_t len, bool done)
{
	struct uffdio_range r = {.start = at, .len = len};

	if (!done)
		syscall(SYS_ioctl, uffd, UFFDIO_UNREGISTER, &r);
	syscall(SYS_ioctl, uffd, UFFDIO_WAKE, &r);
}

static int step_there(const struct convert *c, uint64_t at, uint64_t len, char *window)
{
	uint64_t old;
	int rc = 0;

	signals_block(&old);
	if (c->uffd >= 0)
		rc = protect(c->uffd, at, len);
	for (uint64_t i = 0; !rc && i < len; i += PAGE_BYTES)
		copy_page((void *)(window + i), (void *)(uintptr_t)(at + i));
	if (!rc)
		rc = map_at(at, len, MAP_SHARED | MAP_POPULATE, c->arena->fd, at);
	if (c->uffd >= 0)
		release(c->uffd, at, len, !rc);
	signals_restore(&old);
	return rc;
}

/* Alone: new anonymous memory, filled from the arena. */
static int step_back_alone(uint64_t at, uint64_t len, const char *window)
{
	uint64_t old;
	int rc;

	signals_block(&old);
	rc = map_at(at, len, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (uint64_t i = 0; !rc && i < len; i += PAGE_BYTES) {
		const uint64_t *from = (const void *)(window + i);

		if (!page_is_zero(from))
			copy_page((void *)(uintptr_t)(at + i), from);
	}
	signals_restore(&old);
	return rc;
}

/*
 * With other threads: one system call makes the same pages private; who writes first, they or
 * we, gets a copy.  When each page has been copied the arena's can go.
 */
static int step_back_threads(const struct arena *own, uint64_t at, uint64_t len, uint64_t offset)
{
	int rc = map_at(at, len, MAP_PRIVATE, own->fd, offset);

	return rc ? rc : populate_write(at, len);
}

/* ---- whole ranges ---- */

static int uffd_full(void)
{
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC), dev;

	if (fd >= 0)
		return fd;
	dev = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	if (dev < 0)
		return -1;
	fd = ioctl(dev, USERFAULTFD_IOC_NEW, O_CLOEXEC);
	close(dev);
	return fd;
}

static void tell_missing(enum uffd_grade can)
{
	static _Atomic bool told;

	if (can >= UFFD_PRESENT || atomic_exchange_explicit(&told, true, memory_order_relaxed))
		return;
	log_line(LOG_LVL_INFO,
		"beside other threads this kernel (before Linux 5.19) %s: peers copy it by system "
		"calls, which is slower",
		can == UFFD_NOTHING ? "cannot map memory for peers"
				    : "maps memory for peers once, and not again after "
				      "ibv_dereg_mr");
}

/* Kept for the next time; it is about the memory of the process that made it. */
static struct {
	struct own_fd fd;
	pid_t pid;
	bool full;
	bool populate; /* it protects only pages that are there */
} kept = {.fd = {.fd = -1}};

/* user: one that holds off no system calls will do.  -1: none can be had. */
static int get_uffd(bool user)
{
	enum uffd_grade can;
	int fd;

	if (kept.pid == getpid() && own_fd_ok(&kept.fd) && (kept.full || user))
		return kept.fd.fd;
	own_fd_close(&kept.fd);
	kept.pid = getpid();
	fd = uffd_full();
	kept.full = fd >= 0;
	if (fd < 0 && user)
		fd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	can = fd >= 0 ? uffd_agree(fd) : UFFD_NOTHING;
	kept.populate = can != UFFD_ALL;
	if (fd >= 0)
		tell_missing(can);
	if (fd >= 0 && can == UFFD_NOTHING) {
		close(fd);
		fd = -1;
	}
	kept.fd = own_fd(fd);
	return kept.fd.fd;
}

int convert_begin(struct convert *c, struct arena *own, bool threads, bool user)
{
	*c = (struct convert){.arena = own, .mode = CONVERT_ALONE, .uffd = -1};
	if (!threads)
		return 0;
	c->uffd = get_uffd(user);
	c->mode = kept.full ? CONVERT_FULL : CONVERT_USER;
	c->populate = kept.populate;
	return c->uffd < 0 ? -EPERM : 0;
}

bool convert_watched(uint64_t at)
{
	struct uffdio_register reg = {
		.range = {.start = at, .len = PAGE_BYTES}, .mode = UFFDIO_REGISTER_MODE_WP};
	int saved = errno, uffd = get_uffd(true);
	bool watched = uffd < 0 || ioctl(uffd, UFFDIO_REGISTER, &reg);

	if (!watched)
		ioctl(uffd, UFFDIO_UNREGISTER, &reg.range);
	errno = saved;
	return watched;
}

/* The next step from at: it crosses no multiple of a step's size, so no window's end either. */
static uint64_t step_of(uint64_t at, uint64_t end)
{
	uint64_t len = CONVERT_STEP - at % CONVERT_STEP;

	return len < end - at ? len : end - at;
}

/*
 * All memory that a step needs, so that no store in it can fail, and what is not protected unless
 * it is there.
 */
static int prepare_step(const struct convert *c, uint64_t at, uint64_t len, char *window)
{
	int saved = errno, rc = 0;

	if (madvise(window, len, MADV_POPULATE_WRITE))
		rc = -errno;
	if (rc == -EINVAL) /* before Linux 5.14 */
		rc = fallocate(c->arena->fd, 0, at, len) ? -errno : 0;
	errno = saved;
	return !rc && c->populate ? populate_write(at, len) : rc;
}

int convert_there(struct convert *c, uint64_t start, uint64_t end, uint64_t *done)
{
	int rc = 0;

	for (*done = start; !rc && *done < end;) {
		uint64_t len = step_of(*done, end);
		char *window = arena_at(c->arena, *done, len);

		if (!window)
			return -ENOMEM;
		rc = prepare_step(c, *done, len, window);
		if (!rc)
			rc = step_there(c, *done, len, window);
		if (rc)
			sparse_empty(window, len);
		else
			*done += len;
	}
	return rc;
}

static bool overlap(uint64_t start, uint64_t end, uint64_t from, uint64_t to)
{
	return start < to && from < end;
}

static bool in_use_now(uint64_t start, uint64_t end)
{
	uint64_t sp = (uintptr_t)__builtin_frame_address(0), tp = (uintptr_t)pthread_self();

	return overlap(start, end, sp - STACK_BELOW, sp + STACK_ABOVE) ||
	       overlap(start, end, tp, tp + THREAD_BYTES) ||
	       overlap(start, end, (uintptr_t)&errno, (uintptr_t)(&errno + 1));
}

/* The stack of the thread that forks, its record with it; top 0: not known. */
static struct {
	uint64_t low, top;
} forking;

void convert_before_fork(void)
{
	pthread_attr_t attr;
	void *stack = NULL;
	size_t size = 0;

	forking.top = 0;
	if (gettid() == getpid() || pthread_getattr_np(pthread_self(), &attr))
		return;
	if (!pthread_attr_getstack(&attr, &stack, &size)) {
		forking.low = (uintptr_t)stack;
		forking.top = (uintptr_t)stack + size;
	}
	pthread_attr_destroy(&attr);
}

/* As in_use_now(), but not what lies next to the stack: that must not stay the parent's as well. */
static bool in_use_by_child(uint64_t start, uint64_t end)
{
	uint64_t sp = (uintptr_t)__builtin_frame_address(0), low = sp - STACK_BELOW;

	if (sp < forking.low || sp >= forking.top)
		return in_use_now(start, end);
	return overlap(start, end, low > forking.low ? low : forking.low, forking.top) ||
	       overlap(start, end, (uintptr_t)&errno, (uintptr_t)(&errno + 1));
}

bool convert_own_pages(uint64_t start, uint64_t end)
{
	pthread_attr_t attr;
	void *stack;
	size_t size;
	bool own;

	/* The first thread's stack grows down, which its area shows. */
	if (in_use_now(start, end) || gettid() == getpid())
		return in_use_now(start, end);
	if (pthread_getattr_np(pthread_self(), &attr))
		return true;
	own = pthread_attr_getstack(&attr, &stack, &size) ||
	      overlap(start, end, (uintptr_t)stack, (uintptr_t)stack + size);
	pthread_attr_destroy(&attr);
	return own;
}

static int rights_of(const struct vma *v)
{
	return (v->readable ? PROT_READ : 0) | (v->writable ? PROT_WRITE : 0) |
	       (v->executable ? PROT_EXEC : 0);
}

int convert_back(struct arena *own, const struct vma *v, bool alone)
{
	uint64_t len, at, offset = v->offset;
	int rc = 0;

	/* Where the memory was moved to may lie otherwise in its window than where it was. */
	for (at = v->start; !rc && at < v->end; at += len, offset += len) {
		uint64_t in_step = step_of(offset, offset + CONVERT_STEP);
		char *window;

		len = in_step < v->end - at ? in_step : v->end - at;
		window = arena_at(own, offset, len);
		if (!window || (!alone && !arena_fd_ok(own)))
			return -EBADF;
		rc = alone ? step_back_alone(at, len, window)
			   : step_back_threads(own, at, len, offset);
		if (rc)
			return rc;
		if (rights_of(v) != rw)
			mprotect((void *)(uintptr_t)at, len, rights_of(v));
		sparse_empty(window, len);
	}
	return rc;
}

int convert_in_child(const struct vma *v)
{
	void *copy;
	int rc;

	if (in_use_by_child(v->start, v->end))
		return -EBUSY;
	copy = mmap(NULL, CONVERT_STEP, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	rc = copy == MAP_FAILED ? -errno : 0;
	if (!rc && !v->readable)
		mprotect((void *)(uintptr_t)v->start, v->end - v->start, PROT_READ);
	for (uint64_t at = v->start, len; !rc && at < v->end; at += len) {
		len = step_of(at, v->end);
		for (uint64_t i = 0; i < len; i += PAGE_BYTES)
			copy_page((void *)((char *)copy + i), (void *)(uintptr_t)(at + i));
		rc = step_back_alone(at, len, copy);
		if (!rc && rights_of(v) != rw)
			mprotect((void *)(uintptr_t)at, len, rights_of(v));
	}
	if (copy != MAP_FAILED)
		munmap(copy, CONVERT_STEP);
	return rc;
}
