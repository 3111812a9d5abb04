// SPDX-License-Identifier: BSD-3-Clause
#include "pages/mapped.h"

#include <errno.h>
#include <sys/mman.h>

#include "pages/vma.h"

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

bool mapped_populate(uint64_t addr, uint64_t len, bool write)
{
	uint64_t from = addr & ~(uint64_t)(PAGE_BYTES - 1);
	uint64_t to = (addr + len + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
	int saved = errno, rc;

	if (!len)
		return true;
	rc = madvise((void *)(uintptr_t)from, to - from,
		write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	if (rc && errno == EINVAL) /* before Linux 5.14, or memory of a device */
		rc = mapped_check(addr, len, write);
	errno = saved;
	return rc == 0;
}
