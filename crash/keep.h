/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A live journal, from the side of who keeps it: its memory is a memfd that cannot be cut, others
 * open that through this process (crash/journal.h), and in the end it is saved into the file.
 */
#pragma once

#include <stdint.h>

struct journal_keep {
	int file, memory;
	uint64_t size;
};

/*
 * From now on this process keeps the journal, which must not be live: -EBUSY.  -EPROTO and -EBADMSG
 * as of journal_open(), -EFBIG, -ENOSPC, another negative errno.  The caller sees to it that nobody
 * else does so at that moment.
 */
int journal_keep(struct journal_keep *k, const char *path);

/*
 * If nobody can write any more, nor ever will, saves the journal into its file, to whose size it
 * gives back what was cut off, and keeps it no longer.  -EBUSY: somebody can.  Another negative
 * errno: it could not be saved, and the file goes on saying that it is live.
 */
int journal_keep_end(struct journal_keep *k);

/* Lets go of it, whatever has become of it. */
void journal_keep_close(struct journal_keep *k);
