/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of an HCA: fabric/sysfs.h has the whole. */
#pragma once

#include "fabric/page.h"
#include "fabric/tree.h"

/*
 * Brings sys/class/infiniband/<device> up to date, ports included; the directories above it are
 * there.  Errors are kept in the tree.
 */
void sysfs_put_hca(struct tree *t, const struct fabric_page *page);
