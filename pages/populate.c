// SPDX-License-Identifier: BSD-3-Clause
#include "pages/populate.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "pages/vma.h"

/*
 * Of memory that may be next to what is registered: not for a sanitizer to judge.  A compiler may
 * make a mere load of an addition of 0, but not of an exchange.
 */
__attribute__((noinline, no_sanitize_address, no_sanitize_thread)) static void touch(uint64_t page)
{
	_Atomic uint64_t *word = (_Atomic uint64_t *)(uintptr_t)page;
	uint64_t v = atomic_load_explicit(word, memory_order_relaxed);

	while (!atomic_compare_exchange_weak_explicit(
		word, &v, v, memory_order_relaxed, memory_order_relaxed))
		;
}

int populate_write(uint64_t at, uint64_t len)
{
	int saved = errno, rc = 0;

	if (madvise((void *)(uintptr_t)at, len, MADV_POPULATE_WRITE))
		rc = -errno;
	errno = saved;
	if (rc != -EINVAL)
		return rc;
	for (uint64_t page = at; page < at + len; page += PAGE_BYTES)
		touch(page);
	return 0;
}
