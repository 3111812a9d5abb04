/* SPDX-License-Identifier: BSD-3-Clause */
/* Other hosts that have requests half open here: how many. */
#pragma once

#include "cm/cm.h"

/*
 * One more of the host with that GID; *peer is what it is counted in, NULL for this host, whose
 * processes are this user's.  -EBUSY: it has CM_HALF_OPEN_MAX of them; -ENOMEM.
 */
int peer_admit(struct cm *cm, const uint8_t gid[16], struct cm_peer **peer);

/* One less; NULL: none. */
void peer_let_go(struct cm *cm, struct cm_peer *peer);
