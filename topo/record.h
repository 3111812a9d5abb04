/* SPDX-License-Identifier: BSD-3-Clause */
/* The records of a netlist: a node, then its ports. */
#pragma once

#include "topo/reader.h"

/* Takes a node of that kind, behind the word that says so; it is the record.  0 or -errno. */
int record_node(struct reader *r, enum topo_kind kind, struct lex *l);

/*
 * Takes a port of the record: [N] "PEER"[M], or @[N] "ALIAS", which names this port for others.
 * 0 or -errno.
 */
int record_port(struct reader *r, struct lex *l);
