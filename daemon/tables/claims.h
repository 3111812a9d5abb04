/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The claims of a fabric (rdv/claim.h), as weftd has them: each is of one process.  Which one is
 * taken is drawn.
 *
 *   free --- claims_take() ---> held --- claims_rest() ---> resting --- others rest ---> free
 *                                 ^
 *   of a predecessor -------------' claims_keep(): its process brings it
 *
 * A file of the runtime directory, NAME.qpns, has a bit for each, so that a weftd that is started
 * anew knows its fabric's numbers before their processes have come.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rdv/claim.h"
#include "rdv/paths.h"

enum { CLAIMS_RESTING = 32 };

struct claims {
	int socket[CLAIMS];               /* + 1; 0: none */
	uint8_t ours[CLAIMS / 8];         /* as the file has it */
	uint32_t resting[CLAIMS_RESTING]; /* the one that rests for longest first */
	uint32_t n_resting;
	uint64_t none_ns; /* when all were found to be taken; 0: they were not */
	int file;         /* -1: none */
};

/* c is zeroed.  Reads what a predecessor has left, and forgets what nobody holds any more. */
void claims_start(struct claims *c, const struct rdv_paths *paths);

/* The fabric ends.  stay: some processes may go on with what they have. */
void claims_end(struct claims *c, const struct rdv_paths *paths, bool stay);

/*
 * Takes one that nobody has, at a drawn place; none of those that `used` has a word for.  Its
 * number; -ENOSPC: all are others' (said in the log, with whose they are); -EMFILE and the like.
 */
int claims_take(struct claims *c, const uint32_t used[CLAIMS]);

/*
 * A process holds claim n already; fd: its socket, -1: the process has lost it.  Takes fd over on
 * success.  -EEXIST: it is another fabric's by now; -EINVAL: fd is another socket.
 */
int claims_keep(struct claims *c, uint32_t n, int fd);

/* Its process is gone: it is not taken again before CLAIMS_RESTING others are gone, too. */
void claims_rest(struct claims *c, uint32_t n);

/* Its socket, -1: we have none. */
int claims_socket(const struct claims *c, uint32_t n);

/* Is it this fabric's, as far as is known?  Also where its process has not come yet. */
bool claims_are_ours(const struct claims *c, uint32_t n);
