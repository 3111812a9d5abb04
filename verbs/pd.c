// SPDX-License-Identifier: BSD-3-Clause
#include "verbs/objects.h"

#include <stdlib.h>

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct verbs_pd *pd = calloc(1, sizeof(*pd));
	int rc;

	if (!pd)
		return fail_null(ENOMEM);
	rc = hca_pd_alloc(&pd->hca);
	if (rc) {
		free(pd);
		return fail_null(rc);
	}
	pd->pd.context = context;
	pd->pd.handle = hca_pd_handle(pd->hca);
	return &pd->pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	int rc = hca_pd_free(to_pd(pd)->hca);

	if (!rc)
		free(to_pd(pd));
	return to_errno(rc);
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	(void)context, (void)pd_handle;
	return fail_null(EOPNOTSUPP);
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
	(void)pd;
}
