/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The model of a round that broke off because the other end was killed: what may have happened of
 * it, and nothing else.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>

struct end;

/* A completion that only the death of the other end explains: checks it; false: it is another. */
bool broken_completion(struct end *e, const struct ibv_wc *wc, unsigned lane, bool is_send);
/* That receive has completed with a message. */
void broken_note_slot(struct end *e, unsigned slot);
/*
 * The other end is dead: waits for what completes all the same, and compares memory.  The objects
 * are of no use afterwards but to be taken down.
 */
void broken_check(struct end *e);
