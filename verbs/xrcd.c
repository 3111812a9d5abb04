// SPDX-License-Identifier: BSD-3-Clause
// XRC domains.
#include "verbs/context.h"

#include <stdlib.h>

struct ibv_xrcd *verbs_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	const uint32_t wanted = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct verbs_xrcd *xrcd;
	int rc;

	if (attr->comp_mask >= IBV_XRCD_INIT_ATTR_RESERVED)
		return fail_null(EOPNOTSUPP);
	if ((attr->comp_mask & wanted) != wanted)
		return fail_null(EINVAL);
	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return fail_null(ENOMEM);
	rc = hca_xrcd_open(attr->fd, attr->oflags, &xrcd->hca);
	if (rc) {
		free(xrcd);
		return fail_null(rc);
	}
	xrcd->xrcd.context = context;
	return &xrcd->xrcd;
}

int verbs_close_xrcd(struct ibv_xrcd *xrcd)
{
	int rc = hca_xrcd_close(to_xrcd(xrcd)->hca);

	if (!rc)
		free(to_xrcd(xrcd));
	return to_errno(rc);
}
