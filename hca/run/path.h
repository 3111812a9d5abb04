/* SPDX-License-Identifier: BSD-3-Clause */
/* Where an address leads: the one place that decides it. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/seg/seg_path.h"

enum path_kind {
	PATH_LOCAL,  /* to this host */
	PATH_GROUP,  /* to a multicast group */
	PATH_REMOTE, /* elsewhere, and there is a far end that knows how (hca/run/far.h) */
};

/*
 * Where attr leads, in *path: what attr says also if it leads nowhere.  An enum path_kind; -EINVAL:
 * port, GRH or sgid_index; -EHOSTUNREACH: another host, to which nothing leads; -EMFILE,
 * -ENFILE, -ENOMEM: what is needed to look for the way is not to be had.  *why says it in words
 * then.
 */
int path_find(const struct ibv_ah_attr *attr, struct seg_path *path, const char **why);

/*
 * The same for a GID alone, without other hosts: PATH_LOCAL, and *index where it stands in the
 * port's table; PATH_GROUP; -EHOSTUNREACH.
 */
int path_find_gid(const uint8_t *gid, uint32_t *index);
