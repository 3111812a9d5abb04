/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a topology can be a subnet. */
#pragma once

#include "topo/build.h"

/* What is wrong, and with which node. */
struct topo_fault {
	uint32_t node;
	char reason[TOPO_ERROR / 2];
};

/*
 * GUIDs: none is 0, those of nodes differ, and those of wired adapter ports; both ends of a wire
 * have a width and a speed in common.  LIDs: those asked for are unicast, aligned to their LMC and
 * given once, and there are enough for all.  0; -EINVAL with *fault; -ENOMEM.
 */
int topo_check(const struct topo *t, struct topo_fault *fault);
