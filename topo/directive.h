/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "topo/reader.h"

/*
 * Takes a line of a netlist: a directive, a node, or one of the present node's ports.  What is none
 * of these, and no assignment, is skipped, as the headings of ibnetdiscover are.  0 or -errno.
 */
int directive_line(struct reader *r, struct lex line);
