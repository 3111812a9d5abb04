// SPDX-License-Identifier: BSD-3-Clause
/*
 * Who has no GPU pays nothing for those who have: neither opening the device nor a registration
 * that fails has the loader look through every folder for a driver that is not loaded.
 */
#include <dlfcn.h>
#include <sys/mman.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { SIZE = 4096 };

static unsigned calls;

/* In place of libc's, for the library, too. */
__attribute__((visibility("default"))) void *dlopen(const char *name, int flags)
{
	(void)name;
	(void)flags;
	calls++;
	return NULL;
}

int main(void)
{
	struct ibv_context *context = vp_open();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	void *hole = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(dlopen("counted.so", RTLD_LAZY) == NULL);
	CHECK_EQ(calls, 1);
	CHECK(ibv_reg_mr(pd, hole, SIZE, 0) == NULL);
	CHECK_EQ(calls, 1);
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	return check_result();
}
