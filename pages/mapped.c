// SPDX-License-Identifier: BSD-3-Clause
#include "pages/mapped.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pages/vma.h"

/* So many pages at most are asked for one by one, which is quicker than MADV_POPULATE_WRITE. */
enum { SINGLY = 2 };

int mapped_check(uint64_t addr, uint64_t len, bool writable)
{
	uint64_t at = addr, end = addr + len;
	int saved = errno, rc = 0;
	struct vma_walk w;
	struct vma v;

	if (vma_walk_begin(&w, addr)) {
		errno = saved;
		return 0;
	}
	while (!rc && at < end) {
		rc = vma_walk_next(&w, &v);
		if (!rc && (v.start > at || !v.readable || (writable && !v.writable)))
			rc = -EFAULT;
		at = v.end;
	}
	vma_walk_end(&w);
	errno = saved;
	return rc ? -EFAULT : 0;
}

/*
 * The kernel changes a word of the page to what it is, atomically, so that no store of another
 * thread is undone.  False: it could not, or does not know how.
 */
static bool touch_writable(uint64_t page)
{
	static uint32_t nobody_waits;

	return syscall(SYS_futex, &nobody_waits, FUTEX_WAKE_OP_PRIVATE, 0, NULL, page,
		       FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_LT, -2048)) >= 0;
}

static bool touch_each(uint64_t from, uint64_t to)
{
	for (; from < to; from += PAGE_BYTES)
		if (!touch_writable(from))
			return false;
	return true;
}

bool mapped_populate(uint64_t addr, uint64_t len, bool write)
{
	uint64_t from = addr & ~(uint64_t)(PAGE_BYTES - 1);
	uint64_t to = (addr + len + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
	int saved = errno, rc;

	if (!len || (write && to - from <= SINGLY * PAGE_BYTES && touch_each(from, to)))
		return true;
	rc = madvise((void *)(uintptr_t)from, to - from,
		write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	if (rc && errno == EINVAL) /* before Linux 5.14, or memory of a device */
		rc = mapped_check(addr, len, write);
	errno = saved;
	return rc == 0;
}
