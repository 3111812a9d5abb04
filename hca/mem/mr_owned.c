// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/mr_owned.h"

#include <errno.h>
#include <infiniband/verbs.h>

#include "hca/mem/mr.h"
#include "hca/obj/mr.h"

int mr_add_owned(struct hca_pd *pd, const struct mr_kind *kind, void *of, uint64_t length,
	uint64_t iova, unsigned access, struct hca_mr **out)
{
	const struct mr_region r = {.addr = iova,
		.length = length,
		.iova = iova,
		.access = access,
		.kind = kind,
		.of = of};
	int rc = 0;

	if (!length || iova + length < iova || access & IBV_ACCESS_ON_DEMAND)
		rc = -EINVAL;
	if (!rc)
		rc = mr_check_access(iova, length, access);
	return rc ? rc : mr_add(pd, &r, out);
}
