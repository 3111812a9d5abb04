/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "topo/netlist.h"

/* The topology of a SPEC (topo/generate.h), or else of the netlist with that path; as
 * netlist_load. */
int topo_load(struct netlist *out, const char *what, char error[TOPO_ERROR]);
