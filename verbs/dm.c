// SPDX-License-Identifier: BSD-3-Clause
// Device memory.
#include "verbs/context.h"

#include <stdlib.h>

static int copy_to(struct ibv_dm *dm, uint64_t offset, const void *from, size_t length)
{
	return to_errno(hca_dm_write(to_dm(dm)->hca, offset, from, length));
}

static int copy_from(void *to, struct ibv_dm *dm, uint64_t offset, size_t length)
{
	return to_errno(hca_dm_read(to_dm(dm)->hca, offset, to, length));
}

static struct ibv_dm *wrap(struct verbs_dm *dm, struct ibv_context *context)
{
	dm->dm = (struct ibv_dm){.context = context,
		.memcpy_to_dm = copy_to,
		.memcpy_from_dm = copy_from,
		.comp_mask = IBV_DM_MASK_HANDLE,
		.handle = hca_dm_handle(dm->hca)};
	return &dm->dm;
}

struct ibv_dm *verbs_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct verbs_dm *dm;
	int rc;

	if (attr->comp_mask)
		return fail_null(EINVAL);
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return fail_null(ENOMEM);
	rc = hca_dm_alloc(attr->length, attr->log_align_req, &dm->hca);
	if (rc) {
		free(dm);
		return fail_null(rc);
	}
	return wrap(dm, context);
}

int verbs_free_dm(struct ibv_dm *dm)
{
	int rc = hca_dm_free(to_dm(dm)->hca);

	if (!rc)
		free(to_dm(dm));
	return to_errno(rc);
}

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	struct verbs_dm *dm = calloc(1, sizeof(*dm));
	int rc;

	if (!dm)
		return fail_null(ENOMEM);
	rc = hca_dm_import(to_ctx(context)->card, dm_handle, &dm->hca);
	if (rc) {
		free(dm);
		return fail_null(rc);
	}
	return wrap(dm, context);
}

void ibv_unimport_dm(struct ibv_dm *dm)
{
	hca_dm_put(to_dm(dm)->hca);
	free(to_dm(dm));
}
