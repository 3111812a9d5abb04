/* SPDX-License-Identifier: BSD-3-Clause */
/* The files for management datagrams: fabric/sysfs.h has the whole. */
#pragma once

#include "fabric/page.h"
#include "fabric/tree.h"

/*
 * Brings sys/class/infiniband_mad and its device nodes up to date: for each port of the page a
 * umadN and an issmN, N counting from 0 in the order of the ports, as the kernel numbers those of
 * its first device.  Errors are kept in the tree.
 */
void sysfs_put_mad(struct tree *t, const struct fabric_page *page);
