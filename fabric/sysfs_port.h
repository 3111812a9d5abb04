/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of a port: fabric/sysfs.h has the whole. */
#pragma once

#include "fabric/page.h"
#include "fabric/tree.h"

/*
 * Brings ports/<number> in the HCA's directory hca up to date: state, rate, tables of GIDs and
 * P_Keys, counters; hca and its ports are there.  Errors are kept in the tree.
 */
void sysfs_put_port(
	struct tree *t, const char *hca, uint32_t number, const struct fabric_port *port);
