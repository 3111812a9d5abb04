// SPDX-License-Identifier: BSD-3-Clause
// Device memory: not there yet.  alloc_dm, free_dm and reg_dm_mr are NULL in context.c.
#include "verbs/objects.h"

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	(void)context, (void)dm_handle;
	return fail_null(EOPNOTSUPP);
}

void ibv_unimport_dm(struct ibv_dm *dm)
{
	(void)dm;
}
