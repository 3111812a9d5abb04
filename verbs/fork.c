// SPDX-License-Identifier: BSD-3-Clause
/*
 * Fork: nothing to prepare.  Registered memory is reached by address, not by pinned pages, so
 * that a fork moves nothing away from under an MR; the HCA looks after its own memory.
 */
#include "verbs/objects.h"

int ibv_fork_init(void)
{
	return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

#pragma GCC visibility push(default)
/* Exported for providers; no public header declares them. */
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);
#pragma GCC visibility pop

int ibv_dontfork_range(void *base, size_t size)
{
	(void)base, (void)size;
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	(void)base, (void)size;
	return 0;
}
