/* SPDX-License-Identifier: BSD-3-Clause */
/* Peer clients in the segment, where weftd finds their counters. */
#pragma once

/*
 * Shows the clients that are not shown yet.  The process is attached.  What is counted from then
 * on is seen by weftd at once, also when the process has ended.
 */
void peer_show(void);

/* In a forked child: nothing is shown yet. */
void peer_show_forked_child(void);
