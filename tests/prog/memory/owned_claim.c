// SPDX-License-Identifier: BSD-3-Clause
/*
 * Linked into other test programs: all memory that they register is owned, by functions that copy
 * from and to it; with OWNED_CLAIMS=half that of every other page.
 */
#include <stdlib.h>
#include <string.h>

#include "hca/api/hca.h"
#include "hca/mem/mr_owned.h"
#include "hca/obj/mr.h"
#include "hca/seg/seg_mr.h"
#include "pages/copy.h"

int __real_hca_mr_reg(struct hca_pd *pd, void *addr, uint64_t length, uint64_t iova,
	unsigned access, struct hca_mr **out);
int __wrap_hca_mr_reg(struct hca_pd *pd, void *addr, uint64_t length, uint64_t iova,
	unsigned access, struct hca_mr **out);
int __real_hca_mr_rereg(struct hca_mr *mr, int flags, struct hca_pd *pd, void *addr,
	uint64_t length, unsigned access);
int __wrap_hca_mr_rereg(struct hca_mr *mr, int flags, struct hca_pd *pd, void *addr,
	uint64_t length, unsigned access);

static int read_bytes(struct hca_mr *mr, uint64_t off, void *to, uint64_t n)
{
	copy_ordered(to, (const char *)mr->of + off, n);
	return 0;
}

static int write_bytes(struct hca_mr *mr, uint64_t off, const void *from, uint64_t n)
{
	copy_ordered((char *)mr->of + off, from, n);
	return 0;
}

static const struct mr_io io = {.read = read_bytes, .write = write_bytes};
static const struct mr_kind claimed = {.flags = MR_OWNED, .io = &io};

static bool is_claimed(const void *addr)
{
	const char *which = getenv("OWNED_CLAIMS");

	return !which || strcmp(which, "half") != 0 || (uintptr_t)addr >> 12 & 1;
}

/* What cannot be registered at all is refused as ever. */
int __wrap_hca_mr_reg(struct hca_pd *pd, void *addr, uint64_t length, uint64_t iova,
	unsigned access, struct hca_mr **out)
{
	int rc = __real_hca_mr_reg(pd, addr, length, iova, access, out);

	if (rc || access & IBV_ACCESS_ON_DEMAND || !is_claimed(addr))
		return rc;
	rc = hca_mr_dereg(*out);
	return rc ? rc : mr_add_owned(pd, &claimed, addr, length, iova, access, out);
}

/* For programs that use no region after this: such memory cannot be registered anew. */
int __wrap_hca_mr_rereg(struct hca_mr *mr, int flags, struct hca_pd *pd, void *addr,
	uint64_t length, unsigned access)
{
	return mr->kind->io ? 0 : __real_hca_mr_rereg(mr, flags, pd, addr, length, access);
}
