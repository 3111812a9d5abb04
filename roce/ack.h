/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When acknowledgements leave.  A message is delivered first; its ACK rides behind packets that
 * leave anyway, if the program answers what it gets, and else leaves at once.  All under the
 * engine's lock.
 */
#pragma once

#include "roce/flow.h"

/* Requests of the program were posted: does it answer? */
void ack_note_post(struct flow *f, uint64_t now);

/* Is an ACK of what is owed due?  `rides`: packets of the flow are about to leave. */
bool ack_is_due(const struct flow *f, uint64_t now, bool rides);

/* It has left, by itself or behind others; or one more is owed. */
void ack_note(struct flow *f, uint64_t now, bool left, bool rode);

/* When one that is owed leaves at the latest, whoever looks; 0: none is owed. */
uint64_t ack_deadline(const struct flow *f);

/* Calls visit for each flow whose ACK is due at an idle look; takes those off that owe none. */
void ack_idle(uint64_t now, void (*visit)(struct flow *f));

/* The flow goes. */
void ack_forget(struct flow *f);
void ack_forked_child(void);
