// SPDX-License-Identifier: BSD-3-Clause
/*
 * Attributes that the kernel shows in smaps alone, found by asking for their opposite on one page:
 * if the area had it, the page is split off, which a query sees, and gets it back at once.
 */
#include "pages/vma_probe.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { KEY_NO_ACCESS = 1, FIRST_KEY = 1 };

/* The area that page lies in now; false: the kernel does not tell quickly. */
static bool area_of(uint64_t page, struct vma *v)
{
	struct vma_walk w;
	bool found;

	if (vma_walk_begin(&w, page))
		return false;
	found = !w.text && !vma_walk_next(&w, v) && v->start <= page;
	vma_walk_end(&w);
	return found;
}

/*
 * Has the area around page what `clear` takes away and `set` gives?  Also if that cannot be found
 * out.  What changes the area meanwhile is not taken for an answer: page must stand alone.
 */
static bool has(uint64_t page, int clear, int set)
{
	void *p = (void *)(uintptr_t)page;
	struct vma now;

	if (madvise(p, PAGE_BYTES, clear))
		return errno != EINVAL; /* not for this kind of area */
	if (!area_of(page, &now))
		return true;
	if (now.start == page && now.end == page + PAGE_BYTES) {
		madvise(p, PAGE_BYTES, set);
		return true;
	}
	return now.start >= page || now.end <= page + PAGE_BYTES;
}

/* The right that it has already is given to it once more, which only a stack takes like this. */
static bool grows_down(uint64_t page)
{
	void *p = (void *)(uintptr_t)page;

	return !mprotect(p, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_GROWSDOWN) || errno != EINVAL;
}

/* Has the program any protection keys?  The kernel gives the lowest that is free. */
static bool uses_keys(void)
{
	int key = syscall(SYS_pkey_alloc, 0, KEY_NO_ACCESS);

	if (key < 0)
		return errno != ENOSYS && errno != ENOSPC && errno != EINVAL;
	syscall(SYS_pkey_free, key);
	return key != FIRST_KEY;
}

bool vma_probe_plain(const struct vma *v)
{
	/* With a page of the area on either side, so that it cannot merge with another one. */
	uint64_t page = v->start + PAGE_BYTES;
	int saved = errno;
	struct vma now;
	bool plain;

	plain = v->end - v->start >= PROBE_LEAST && area_of(page, &now) && now.start < page &&
		now.end > page + PAGE_BYTES && !has(page, MADV_DOFORK, MADV_DONTFORK) &&
		!has(page, MADV_DODUMP, MADV_DONTDUMP) &&
		!has(page, MADV_KEEPONFORK, MADV_WIPEONFORK) && !grows_down(page) && !uses_keys();
	errno = saved;
	return plain;
}
