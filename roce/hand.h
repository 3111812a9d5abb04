/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that came to the wrong socket: the kernel joins those of one source whatever they are
 * for.  They go to weftd, which gives them to whose they are.
 */
#pragma once

#include "hca/exec/exec.h"
#include "roce/port/socket.h"

/* Gives a packet away that is for no queue pair of ours, unless its number is ours. */
void hand_over(
	struct exec *x, const struct roce_from *from, uint32_t qpn, const uint8_t *bytes, size_t n);

/* Takes what others gave away and is ours.  True: there was something. */
bool hand_look(struct exec *x, int fd, uint64_t now);
