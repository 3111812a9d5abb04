/* SPDX-License-Identifier: BSD-3-Clause */
/* From the send rings of a umad file to the MAD layer. */
#pragma once

#include "daemon/umad_file.h"

enum { UMAD_TURN = 64 }; /* MADs of a file that are sent before others have their turn */

/* Sends at most n MADs of a lane; how many it did.  A ring that is RING_BROKEN breaks the file. */
uint32_t usend_lane(struct ulane *l, uint32_t n);

/* The same of all lanes of a file together. */
uint32_t usend_some(struct ufile *f, uint32_t n);

/*
 * The socket has something to say: sends what programs wrote, n MADs at most; what is left keeps
 * the socket ready.  False: all who had the file have closed it.
 */
bool usend_turn(struct ufile *f, uint32_t n);

/*
 * A message that is longer than a record, behind all that is in the lane; memory: sealed, with the
 * whole of it.  -EINVAL: the memory is not like that; -ENOBUFS: too much is under way;
 * -EMSGSIZE, -ENOMEM.
 */
int usend_message(struct ulane *l, const struct umad_record *rec, int memory);

/* For struct mad_agent: a send of an agent of a file has ended. */
void usend_done(struct mad_agent *a, struct mad_send *s, int status, const uint8_t *response);

/* The agent's sends end without a word. */
void usend_cancel_all(struct uslot *slot);
