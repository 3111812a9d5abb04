// SPDX-License-Identifier: BSD-3-Clause
#include "shim/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { KIND = 3, ACCESS_SHIFT = 2, COUNT_ONE = 16, COUNT = 0xf0 };

_Atomic uint8_t marks[MARKS];

/* Who marked last: a vfork(2)ed child, which has other fds, must not take away our marks. */
static _Atomic pid_t owner;

enum file_kind mark_kind(uint8_t mark)
{
	return mark & KIND;
}

int mark_access(uint8_t mark)
{
	return mark >> ACCESS_SHIFT & O_ACCMODE;
}

uint8_t mark_of(int fd)
{
	return (unsigned)fd < MARKS ? atomic_load_explicit(&marks[fd], memory_order_relaxed) : 0;
}

bool mark_any(void)
{
	return atomic_load_explicit(&owner, memory_order_relaxed);
}

/* The count tells a new mark from an old one of the same file. */
static void put(int fd, uint8_t low)
{
	uint8_t old = mark_of(fd), mark;

	atomic_store_explicit(&owner, getpid(), memory_order_relaxed);
	do
		mark = ((old + COUNT_ONE) & COUNT) | low;
	while (!atomic_compare_exchange_weak(&marks[fd], &old, mark));
}

bool mark_set(int fd, enum file_kind kind, int flags)
{
	if ((unsigned)fd >= MARKS)
		return false;
	put(fd, kind | (flags & O_ACCMODE) << ACCESS_SHIFT);
	return true;
}

void mark_stale(int fd, uint8_t mark)
{
	if (atomic_load_explicit(&owner, memory_order_relaxed) == getpid())
		atomic_compare_exchange_strong(&marks[fd], &mark, 0);
}

void mark_copy(int from, int to)
{
	uint8_t mark = mark_of(from);

	if (mark && (unsigned)to < MARKS)
		put(to, mark & ~COUNT);
	else if (!mark)
		mark_other(to);
}

int mark_other(int fd)
{
	if (marked(fd) && mark_kind(mark_of(fd)) == FILE_UVERBS)
		mark_stale(fd, mark_of(fd));
	return fd;
}

void mark_arrived(int fd)
{
	enum file_kind kind = file_name_kind(fd);

	if (kind != FILE_OTHER)
		mark_set(fd, kind, O_RDWR);
}

/* ---- what exec(2) left open ---- */

/* As getdents64(2) gives them. */
struct entry {
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};

/* -1: "." and "..". */
static int number(const char *name)
{
	int n = 0;

	for (; *name; name++) {
		if (*name < '0' || *name > '9')
			return -1;
		n = n * 10 + *name - '0';
	}
	return n;
}

static void look_at(const char *entries, long len)
{
	for (long at = 0; at < len;) {
		const struct entry *e = (const struct entry *)(entries + at);
		int fd = number(e->name);

		if (fd >= 0)
			mark_arrived(fd);
		at += e->len;
	}
}

/*
 * At once, not when a number is first used: then a seccomp filter may already forbid to ask what a
 * socket is.  Past libc, whose functions are ours to wrap.
 */
__attribute__((constructor)) static void look_at_inherited(void)
{
	char entries[2048] __attribute__((aligned(8)));
	int saved = errno, fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/fd",
				   O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	long len;

	if (fd >= 0) {
		while ((len = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0)
			look_at(entries, len);
		syscall(SYS_close, fd);
	}
	errno = saved;
}
