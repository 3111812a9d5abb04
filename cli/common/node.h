/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdint.h>

/*
 * The number of a node: of the fabric's topology, by id, description, GUID or number; without one
 * of SCIF, by number.  0, or an exit code after printing why, and which names are near.
 */
int cli_find_node(const char *fabric, const char *name, uint32_t *number);
