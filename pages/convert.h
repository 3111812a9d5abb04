/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moving pages of this process between private memory and its arena, where peers can map them,
 * while the program goes on reading and writing them.  No write by a CPU is lost; whoever writes
 * through the kernel (process_vm_writev by a peer, O_DIRECT) must be kept out by the caller.
 *
 * The instant at which pages change places is a leaf section: signals blocked, direct system
 * calls, no lock, no allocation, no log, and nothing of its own in the range.
 */
#pragma once

#include "pages/arena.h"
#include "pages/vma.h"

enum { CONVERT_STEP = 256 * 1024 };

/* How writers are held off for the time of a step. */
enum convert_mode {
	CONVERT_ALONE, /* the calling thread is the only one */
	CONVERT_FULL,  /* by a userfaultfd; system calls that write into the range wait too */
	CONVERT_USER,  /* the same, but such system calls answer EFAULT */
};

struct convert {
	struct arena *arena; /* our own */
	enum convert_mode mode;
	int uffd;      /* stays convert.c's */
	bool populate; /* it protects only pages that are there */
};

/*
 * Prepares for conversions.  threads: other threads run.  user: CONVERT_USER will do if the
 * kernel allows no better.  -EPERM: other threads run and cannot be held off.  A userfaultfd is
 * kept open behind it.
 */
int convert_begin(struct convert *c, struct arena *own, bool threads, bool user);

/*
 * Does a userfaultfd watch the page at `at`, private writable memory?  Also true if that cannot
 * be found out.  The caller serialises this and convert_begin().
 */
bool convert_watched(uint64_t at);

/*
 * Moves [start, end), pages of private writable memory that no userfaultfd watches, into the
 * arena.  *done is how far it came, end on success.  -EBUSY: a userfaultfd watches it after all;
 * -EINVAL: the kernel cannot hold off other threads there (before Linux 5.19, where the memory was
 * in the arena before); other -errno: the kernel refused.  What lies between *done and end is as it
 * was.
 */
int convert_there(struct convert *c, uint64_t start, uint64_t end, uint64_t *done);

/*
 * Is the calling thread's stack or thread area in [start, end)?  Then it cannot be converted by
 * this thread.
 */
bool convert_own_pages(uint64_t start, uint64_t end);

/*
 * The way back: v is an area of arena pages, or a part of one cut to what has to go; afterwards
 * its memory is private, and the arena is empty there.  alone: no other thread runs.  -errno:
 * it stays shared.
 */
int convert_back(struct arena *own, const struct vma *v, bool alone);

/*
 * In the handler of a fork that may need convert_in_child(), before it: notes where the stack of
 * this thread lies.
 */
void convert_before_fork(void);

/*
 * The way back in a forked child, which may not touch the arena: the area becomes anonymous
 * memory with the same bytes.  No other thread runs; nothing is allocated.
 */
int convert_in_child(const struct vma *v);
