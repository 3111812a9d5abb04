/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a connection's completion queue is armed.  An armed queue costs each message a system call
 * of the peer's and a turn of our service thread, which nobody needs while the program itself
 * looks: in a call that spins, or in one call after the other.  So a queue that rings while its
 * program is at work stays unarmed, and the service's thread looks every TICK; it arms the queue
 * again when the program has made no call for a tick, when it finds something that came while the
 * program was away, and whoever is about to sleep arms it first.
 *
 * All under the endpoint's lock but where said.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct scif_ep;

enum { BELL_TICK_MS = 1 };

/* The queue's event was taken, by the service's thread: looks, and decides. */
void bell_rang(struct scif_ep *ep);
/* Somebody is about to sleep until something comes. */
void bell_before_sleep(struct scif_ep *ep);
/* ... in poll(2): from here on its events are waited for by more than calls of ours. */
void bell_before_poll(struct scif_ep *ep);

/* For the service's thread, without locks: are there queues to look at; looks at them. */
bool bell_busy(void);
void bell_tick(void);
/* An endpoint is closed.  Without its lock. */
void bell_forget(struct scif_ep *ep);
/* In a forked child, which has no queues. */
void bell_forked(void);
