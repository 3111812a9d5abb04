/* SPDX-License-Identifier: BSD-3-Clause */
/* A topology as text for programs. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "topo/topo.h"

/* "adapter", "switch", "router". */
const char *topo_kind_name(enum topo_kind kind);

/* How many ports of the node are wired. */
unsigned topo_wired(const struct topo_node *node);

/* As a netlist that reads back as the same topology, whatever it came from. */
void topo_print_net(const struct topo *t, FILE *out);

/* As an object, the caller's; NULL: no memory.  weft-topo(1) lists its members. */
json_t *topo_json(const struct topo *t);
