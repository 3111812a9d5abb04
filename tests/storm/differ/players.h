/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes that play the links under one setting, and what is done to them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct setting {
	const char *share, *mover; /* WEFT_SHARE, and WEFT_MOVER or "default" */
	uint64_t seed;
	bool fabrics;     /* one of them is of another fabric of this host */
	uint32_t without; /* enum disturber, or'ed */
};

/*
 * Plays for so long; false if something differed, which board->text tells.  Nothing of the
 * processes is left afterwards.
 */
bool players_run(const struct setting *s, double seconds);

/* The player at that end of a link; -1: there is no such link. */
int players_at(unsigned link, unsigned side);

/* The exit status of a player that leaves while the game goes on. */
enum { PLAYER_LEFT = 40 };

/*
 * The player at that end, the calling process, is about to leave: true, and it does so at once.
 * False: somebody else sees to its end already.
 */
bool players_leave(unsigned link, unsigned side);
