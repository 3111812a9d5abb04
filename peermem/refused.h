/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What was refused and has no client to count it at: clients that break a rule, DMA windows, files
 * of WEFT_PEER_CLIENTS.  The log has the cause of each.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/* One more.  From any thread, also before there is a place to count it at. */
void peer_refused(void);

/* From now on they are counted there, those of before too. */
void peer_refused_at(_Atomic uint64_t *to);

/* In a forked child: what was the place is its parent's. */
void peer_refused_forked_child(void);
