// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/mr_kinds.h"

#include "hca/mem/dm.h"
#include "hca/mem/mr_fd.h"
#include "hca/mem/mr_peer.h"
#include "hca/seg/seg_mr.h"

const struct mr_kind mr_memory = {.shares = true, .changeable = true};

const struct mr_kind mr_on_demand = {.shares = true, .wanders = true, .changeable = true};

const struct mr_kind mr_of_fd = {.shares = true, .drop = mr_fd_drop};

const struct mr_kind mr_of_dm = {.drop = dm_drop};

const struct mr_kind mr_peer_direct = {
	.shares = true, .changeable = true, .client = true, .drop = mr_peer_drop};

const struct mr_kind mr_peer_owned = {.flags = MR_OWNED,
	.io = &mr_peer_io,
	.changeable = true,
	.client = true,
	.drop = mr_peer_drop};

const struct mr_kind mr_null = {.flags = MR_NULL, .swallows = true};

const struct mr_kind mr_export = {.flags = MR_EXPORT};
