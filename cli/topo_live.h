/* SPDX-License-Identifier: BSD-3-Clause */
/* The topology of a fabric that runs: what weft topo asks weftd. */
#pragma once

#include <jansson.h>

#include "rdv/proto.h"
#include "topo/netlist.h"

/* Its text in a form, which the caller frees.  An exit code after printing why. */
int topo_live_text(const char *fabric, enum proto_topo_form form, char **text);

/* The topology, and the same as JSON with the states; both the caller's.  An exit code. */
int topo_live_load(const char *fabric, struct netlist *n, json_t **live);

/* Carries out a console command, or with "-" those of standard input.  The exit code. */
int topo_live_do(const char *fabric, const char *line);

/*
 * Prints the way of data from one node to another, and back, by the forwarding tables.  The exit
 * code: failed, too, if one of them does not arrive.
 */
int topo_live_route(const char *fabric, const char *from, const char *to);

/* LIDs and states of a node's ports (of a switch: port 0), with commas; of topo_live_load(). */
void topo_live_lids(const json_t *live, uint32_t node, char *out, size_t size);
void topo_live_states(const json_t *live, uint32_t node, char *out, size_t size);
