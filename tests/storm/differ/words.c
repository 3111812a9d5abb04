// SPDX-License-Identifier: BSD-3-Clause
#include "words.h"

#include <string.h>

#include "disturb.h"
#include "end.h"
#include "link.h"

enum { SIZE = 3 * 4096 };

/* In one line, in another one, in another page. */
static const uint32_t offsets[WORDS] = {GUARD, GUARD + 8, 1024, 2 * 4096};

static struct memory mem;
static struct ibv_pd *pd;

void words_make(uint64_t seed, unsigned player)
{
	/* (Who registers the stack of a thread that ends registers nothing.) */
	static const enum memory_kind kinds[] = {MEMORY_HEAP, MEMORY_PRIVATE, MEMORY_PRIVATE,
		MEMORY_SEALED, MEMORY_MEMFD, MEMORY_SYSV, MEMORY_POSIX, MEMORY_SHARED};
	struct rnd r = rnd_of(seed, player, 0, 0x574f5244);

	memory_make(&mem, kinds[rnd_below(&r, sizeof kinds / sizeof *kinds)], SIZE, 0, NULL, NULL);
	memset(mem.at, GUARD_BYTE, GUARD);
	memset(mem.at + SIZE - GUARD, GUARD_BYTE, GUARD);
	pd = ibv_alloc_pd(link_device());
	if (!pd)
		board_fail("ibv_alloc_pd: %m");
	disturb_add_common(&mem, pd);
}

struct ibv_mr *words_register(struct ibv_pd *of, unsigned access)
{
	struct ibv_mr *mr = ibv_reg_mr(of, mem.at, SIZE, access);

	if (!mr)
		board_fail("registering the common words: %m");
	return mr;
}

uint64_t words_address(unsigned i)
{
	return (uintptr_t)mem.at + offsets[i];
}

void words_prepare(struct end *e)
{
	uint64_t next[WORDS];

	memcpy(next, e->word_floor, sizeof next);
	memcpy(e->round_floor, next, sizeof next);
	memset(e->lane_floor, 0, sizeof e->lane_floor);
	for (unsigned i = 0; i < e->r.n; i++) {
		struct request *q = &e->r.r[i];

		if (!q->common || q->from != e->side)
			continue;
		/* As if nobody else were there. */
		q->compare = next[q->word]++;
		q->operand = q->op == DO_ADD ? 1 : q->compare + 1;
	}
}

void words_count(struct end *e, const struct request *q, uint64_t found)
{
	struct word_tally *t = &board->word[e->peer_player][q->word];
	bool counts = q->op == DO_ADD || found == q->compare;
	uint64_t *floor = &e->lane_floor[q->lane][q->poster][q->word], least = *floor;

	/* What this end knew before the round, and what the lane has found in it. */
	if (e->round_floor[q->word] > least)
		least = e->round_floor[q->word];
	if (found < least)
		end_fail(e, "%s on common word %u of player %u found %llu, after %llu were counted",
			op_name(q->op), q->word, e->peer_player, (unsigned long long)found,
			(unsigned long long)least);
	*floor = found + counts;
	if (*floor > e->word_floor[q->word])
		e->word_floor[q->word] = *floor;
	if (!counts)
		return;
	atomic_fetch_add(&t->n, 1);
	atomic_fetch_add(&t->sum, found);
	atomic_fetch_add(&t->squares, found * found);
}

void words_check(unsigned player)
{
	for (unsigned i = 0; i < WORDS; i++) {
		struct word_tally *t = &board->word[player][i];
		uint64_t n = atomic_load(&t->n), is, sum = 0, squares = 0;

		memory_get(&mem, offsets[i], &is, sizeof is);
		for (uint64_t k = 0; k < n; k++) {
			sum += k;
			squares += k * k;
		}
		if (is != n || atomic_load(&t->sum) != sum || atomic_load(&t->squares) != squares)
			board_fail("common word %u of player %u, %s memory, is %llu, and %llu "
				   "atomics have counted it up; the sum of what they found is off "
				   "by %lld",
				i, player, memory_name(mem.kind), (unsigned long long)is,
				(unsigned long long)n, (long long)(atomic_load(&t->sum) - sum));
	}
}
