/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Words of each player on which atomics of all its links meet: nobody knows what one of them finds,
 * but each counts the word up by one, so that no two find the same, and in the end all are counted.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

enum { WORDS = 4, WORDS_PLAYERS = 3 };

struct end;
struct request;

/* What has been counted of a word: how many, the sum of what they found, and of the squares. */
struct word_tally {
	_Atomic uint64_t n, sum, squares;
};

/* Makes those of this process, of memory that the seed says; after disturb_start(). */
void words_make(uint64_t seed, unsigned player);
/* Registers them for the other end of a link; ends the process if that fails. */
struct ibv_mr *words_register(struct ibv_pd *of, unsigned access);
/* The address of word number i under that. */
uint64_t words_address(unsigned i);

/* Says what the requests of the round that comes compare and store. */
void words_prepare(struct end *e);
/* A request of ours is through, and found that: counts it. */
void words_count(struct end *e, const struct request *q, uint64_t found);
/* All links of this process are over: was each request carried out once? */
void words_check(unsigned player);
