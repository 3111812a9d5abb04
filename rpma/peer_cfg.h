/* SPDX-License-Identifier: BSD-3-Clause */
/* What a peer says of its platform. */
#pragma once

#include <stdatomic.h>

#include "rpma/rpma.h"

struct rpma_peer_cfg {
	atomic_bool direct_write_to_pmem;
};
