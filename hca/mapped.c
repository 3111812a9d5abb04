// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mapped.h"

#include <errno.h>

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
