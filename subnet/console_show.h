/* SPDX-License-Identifier: BSD-3-Clause */
/* What a console shows of a subnet. */
#pragma once

#include "subnet/console_syntax.h"

/* All nodes and their ports, or one node with its forwarding table and counters, too.  0. */
int console_dump(struct console *c, const struct console_command *cmd);

/*
 * The way from one LID to another as the forwarding tables have it, hop by hop.  -ENOENT: no port
 * has that LID; -ENOTCONN: it ends before, the hops up to there have been shown.
 */
int console_route(struct console *c, const struct console_command *cmd);
