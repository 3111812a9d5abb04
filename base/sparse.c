// SPDX-License-Identifier: BSD-3-Clause
#include "base/sparse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int sparse_prot(void)
{
#if defined(__x86_64__) || defined(__aarch64__)
	const char *preloads =
		secure_getenv("LD_PRELOAD"); /* where valgrind puts its own libraries */

	if (preloads && strstr(preloads, "/vgpreload_"))
		return PROT_WRITE;
#endif
	return PROT_READ | PROT_WRITE;
}

void sparse_empty(void *p, size_t len)
{
	int saved = errno;

	if (madvise(p, len, MADV_REMOVE))
		memset(p, 0, len);
	errno = saved;
}
