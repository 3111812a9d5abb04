// SPDX-License-Identifier: BSD-3-Clause
/*
 * The private version nodes.  rdma-core's vendor libraries (libmlx5, libefa, ...), which many
 * programs link, take about 60 of these symbols and do not load without them.  They call only
 * verbs_register_driver_<n>, from constructors; the rest would be called for a device of theirs,
 * and there is none.
 */
#include "verbs/objects.h"

#include "verbs/query.h"

/* Targets of the aliases below, which only the assembler sees. */
#define TARGET __attribute__((used)) static

TARGET int private_errno(void)
{
	return EOPNOTSUPP;
}

TARGET int private_minus_one(void)
{
	return fail_minus_one(EOPNOTSUPP);
}

TARGET void *private_null(void)
{
	return fail_null(EOPNOTSUPP);
}

TARGET int private_zero(void)
{
	return 0;
}

TARGET void private_void(void)
{
}

TARGET const char *private_text(void)
{
	return "unknown";
}

TARGET int private_gid_type(struct ibv_context *context, uint8_t port_num, unsigned index,
	enum verbs_gid_sysfs_type *type)
{
	return verbs_query_gid_type(context, port_num, index, type);
}

TARGET bool private_object;

#include "private_symbols.inc"
