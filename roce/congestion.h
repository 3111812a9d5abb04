/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion on the way: marks of routers become notifications, and these smaller windows. */
#pragma once

#include "roce/flow.h"

/*
 * What a packet of f says of it, its IP header's TOS among that.  True: it said nothing else.  The
 * engine's lock; sends nothing by itself.
 */
bool congestion_note(
	struct flow *f, struct exec *x, uint8_t tos, const struct roce_packet *p, uint64_t now);
