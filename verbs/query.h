/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <infiniband/verbs.h>

/* What ibv_query_gid_type() answers: the two texts that sysfs has for a GID's type. */
enum verbs_gid_sysfs_type { GID_SYSFS_IB_ROCE_V1, GID_SYSFS_ROCE_V2 };

/* ibv_query_gid_type() of the private version nodes; 0, or -1 with errno. */
int verbs_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned index,
	enum verbs_gid_sysfs_type *type);
