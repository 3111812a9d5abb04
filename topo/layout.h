/* SPDX-License-Identifier: BSD-3-Clause */
/* Where nodes stand in a picture: in rows, adapters and routers lowest, each near what it is wired
 * to. */
#pragma once

#include "topo/topo.h"

enum { LAYOUT_UNREACHED = UINT32_MAX };

struct layout {
	uint32_t *level; /* of each node: how many wires to the nearest adapter or router */
	uint32_t *order; /* nodes by level, then from left to right */
	uint32_t *first; /* of each level, its place in order; and one more, the end */
	uint32_t n_levels;
};

/* 0 or -ENOMEM; the caller frees it. */
int layout_make(struct layout *l, const struct topo *t);
void layout_free(struct layout *l);
