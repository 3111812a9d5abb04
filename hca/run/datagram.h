/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams: each goes to the QP that its address names, or to all of a multicast group.  The
 * poster carries it into a buffer of the receiver's queue; whatever is in the way, it is dropped
 * and completes in success, as on a wire.
 */
#pragma once

#include "hca/exec/work.h"

/* exec.datagram: executes one (enum step).  For the process that owns the send queue. */
int datagram_send(struct work *w);
