/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Words of each player on which atomics of all its links meet: nobody knows what one of them finds,
 * but each counts the word up by one, so that no two find the same, and in the end all are counted.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { WORDS = 4 };

struct end;
struct request;

/* What has been counted of a word: how many, the sum of what they found, and of the squares. */
struct word_tally {
	uint64_t n, sum, squares;
};

/*
 * What one end of a link has counted, whole rounds of it, whenever it is killed: it writes the
 * half that is not used and turns to that.
 */
struct tally {
	_Atomic uint32_t turn;
	struct tally_half {
		uint64_t rounds; /* of all lives of the link */
		uint32_t life;   /* of the process that has the words; 0: nothing was counted */
		struct word_tally word[WORDS];
	} half[2];
};

/*
 * Makes those of this process, of memory that the seed says; after disturb_start().  life: how many
 * processes have been this player, itself with them.
 */
void words_make(uint64_t seed, unsigned player, uint32_t life);
uint32_t words_life(void);
/*
 * Registers them for the other end of a link, or all of memory, for which access has to be on
 * demand; ends the process if that fails.
 */
struct ibv_mr *words_register(struct ibv_pd *of, unsigned access, bool all);
/* The address of word number i under that. */
uint64_t words_address(unsigned i);

/* Says what the requests of the round that comes compare and store. */
void words_prepare(struct end *e);
/* A request of ours is through, and found that: counts it in this round. */
void words_count(struct end *e, const struct request *q, uint64_t found);
/* The round is through: what was counted in it counts. */
void words_commit(struct end *e);
/* How many rounds that end has counted. */
uint64_t words_rounds(unsigned link, unsigned side);
/* So many requests of the dead may have counted that word up, or not. */
void words_unknown(unsigned i, uint64_t n);
/* All links of this process are over: was each request carried out once? */
void words_check(unsigned player);
