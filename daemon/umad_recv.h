/* SPDX-License-Identifier: BSD-3-Clause */
/* From the MAD layer to the receive ring of a umad file. */
#pragma once

#include "daemon/umad_file.h"

/* For struct mad_agent: a MAD, or a message of any length, has come. */
void urecv_one(struct mad_agent *a, const struct mad_addr *from, const uint8_t mad[MAD_SIZE]);
void urecv_long(struct mad_agent *a, const struct mad_addr *from, const uint8_t *msg, size_t len);

/* Nobody answered: what was written, and the header of the MAD that was sent. */
void urecv_timeout(
	struct ufile *f, const struct umad_hdr *written, const uint8_t mad[MAD_HDR_SIZE]);

/* Takes a place of the file's for what will come, and bytes for what waits for it.  False: there
 * is none, which is counted. */
bool urecv_promise(struct ufile *f, uint64_t bytes);
/* Gives them back. */
void urecv_release(struct ufile *f, uint64_t bytes);

/* A reader may have made room: fills the ring up, and frees what was read. */
void urecv_refill(struct ufile *f);

/* A memfd of the long message of that number.  -ENOENT: it is not in the ring any more. */
int urecv_fetch(struct ufile *f, uint64_t message);

/*
 * Rings the bells of files for which MADs came in this turn, unless they were read in the meantime;
 * the first leaves out those at which a reader looks just now.
 */
void urecv_ring_idle(struct umads *all);
void urecv_ring_all(struct umads *all);

/* After the death of a process with that lane, whose claims on the bell may have left a byte. */
void urecv_bury(struct ufile *f, const struct ulane *dead);

/* The same once more, if there may be a ghost: true while there still may. */
bool urecv_exorcise(struct ufile *f);

/* Frees all that waits. */
void urecv_end(struct ufile *f);
