/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of ports, by the names that they have in the specification. */
#pragma once

#include "subnet/console_syntax.h"

/*
 * PerformanceSet: the counter becomes that value, or the greatest that its field holds.  0,
 * -EINVAL, -ENOENT: no counter has that name.
 */
int console_set_counter(struct console *c, const struct console_command *cmd);

/* Prints a port's PortCounters and PortCountersExtended that are not 0, a line each. */
void console_counters(struct console *c, uint32_t node, uint8_t port);
