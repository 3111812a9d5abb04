/* SPDX-License-Identifier: BSD-3-Clause */
/* ulimit -f, which also bounds memfds: who makes a file larger than that is killed by SIGXFSZ. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

/* May this process make a file of so many bytes?  Does not block. */
static inline bool file_limit_allows(uint64_t bytes)
{
	struct rlimit rl;

	return getrlimit(RLIMIT_FSIZE, &rl) < 0 || rl.rlim_cur >= bytes;
}
