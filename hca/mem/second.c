// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/second.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "pages/vma.h"
#include "rdv/rdv.h"

/* Pages that were converted go back one day, and then a mapping that nobody counts would go too. */
static bool in_arena(const struct vma *v)
{
	int fd = rdv_arena_fd();
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == v->inode &&
	       st.st_dev == makedev(v->dev_major, v->dev_minor);
}

static bool can_be_again(const struct vma *v)
{
	return v->shared && v->page_size <= PAGE_BYTES && !in_arena(v);
}

static int again(const struct vma *v, uint64_t from, uint64_t to, char *at)
{
	void *p;

	if (!can_be_again(v))
		return -EOPNOTSUPP;
	p = mremap((void *)(uintptr_t)from, 0, to - from, MREMAP_MAYMOVE | MREMAP_FIXED, at);
	if (p == MAP_FAILED)
		return errno == ENOMEM ? -ENOMEM : -EOPNOTSUPP;
	return 0;
}

/* Most memory is not shared at all: no address space is taken for it, to be given back at once. */
static int first_area(uint64_t lo)
{
	struct vma_walk w;
	struct vma v;
	int rc = 0;

	if (vma_walk_begin(&w, lo))
		return -EOPNOTSUPP;
	if (vma_walk_next(&w, &v) || v.start > lo)
		rc = -EFAULT;
	else if (!can_be_again(&v))
		rc = -EOPNOTSUPP;
	vma_walk_end(&w);
	return rc;
}

static int areas_again(uint64_t lo, uint64_t hi, char *base)
{
	struct vma_walk w;
	struct vma v;
	int rc = 0;

	if (vma_walk_begin(&w, lo))
		return -EOPNOTSUPP;
	for (uint64_t at = lo; !rc && at < hi; at = v.end) {
		if (vma_walk_next(&w, &v) || v.start > at)
			rc = -EFAULT;
		else
			rc = again(&v, at, v.end < hi ? v.end : hi, base + (at - lo));
	}
	vma_walk_end(&w);
	return rc;
}

int hca_second(void *addr, uint64_t length, void **out)
{
	uint64_t lo = (uintptr_t)addr;
	int saved = errno, rc;
	char *base;

	if (!length || (lo | length) % PAGE_BYTES || lo + length < lo)
		return -EINVAL;
	rc = first_area(lo);
	if (rc) {
		errno = saved;
		return rc;
	}
	base = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED) {
		errno = saved;
		return -ENOMEM;
	}
	rc = areas_again(lo, lo + length, base);
	if (rc)
		munmap(base, length);
	else
		madvise(base, length, MADV_DONTFORK);
	*out = base;
	errno = saved;
	return rc;
}
