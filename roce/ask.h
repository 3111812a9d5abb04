/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester of a flow: what roce/proto/requester.h asks of the send queue and of memory.
 *
 *   ask_enter()   takes the token of the queue pair, and the thread's exec slot
 *   ask_run(), ask_answer()
 *   ask_leave()   what was sent is gone, and token and slot are free again
 *
 * In between nothing of the responder's half may be called, which needs the slot.  All under the
 * engine's lock.
 */
#pragma once

#include "roce/flow.h"

/* For that flow; leaves another one.  False: somebody else has the token just now. */
bool ask_enter(struct flow *f, struct exec *x);

/* If a flow was entered. */
void ask_leave(struct exec *x);

/*
 * Sends what may be sent, up to `bytes`, and flushes a queue pair in error.  due: does first what
 * is due by now, by which time all that had come was read.  True: there is more to send.
 */
bool ask_run(struct flow *f, struct exec *x, uint64_t bytes, bool due, uint64_t now);

/*
 * An acknowledgement or a response, the packet of len bytes.  What it brings for memory that a
 * worker alone may write to is kept for that one.
 */
void ask_answer(struct flow *f, const struct roce_packet *p, const uint8_t *bytes, size_t len,
	uint64_t now);

/* In a worker, with the flow entered: the answers that were kept for it. */
void ask_late(struct flow *f, uint64_t now);

/* The queue pair takes no part any more: nothing of it is completed from now on. */
void ask_stop(struct flow *f);

/*
 * Has anything been begun that has not ended?  tell: once it has, the program hears of it by
 * IBV_EVENT_SQ_DRAINED, unless the queue pair leaves SQD first.
 */
bool ask_draining(struct flow *f, bool tell);
