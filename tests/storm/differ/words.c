// SPDX-License-Identifier: BSD-3-Clause
#include "words.h"

#include <string.h>

#include "disturb.h"
#include "end.h"
#include "link.h"
#include "players.h"

enum { SIZE = 3 * 4096 };

/* In one line, in another one, in another page. */
static const uint32_t offsets[WORDS] = {GUARD, GUARD + 8, 1024, 2 * 4096};

static struct memory mem;
static struct ibv_pd *pd;
static uint32_t my_life;
static _Atomic uint64_t unknown[WORDS];

void words_make(uint64_t seed, unsigned player, uint32_t life)
{
	/* (Who registers the stack of a thread that ends registers nothing.) */
	static const enum memory_kind kinds[] = {MEMORY_HEAP, MEMORY_PRIVATE, MEMORY_PRIVATE,
		MEMORY_SEALED, MEMORY_MEMFD, MEMORY_SYSV, MEMORY_POSIX, MEMORY_SHARED};
	struct rnd r = rnd_of(seed, player, life, 0x574f5244);

	my_life = life;
	memory_make(&mem, kinds[rnd_below(&r, sizeof kinds / sizeof *kinds)], SIZE, 0, NULL, NULL);
	memset(mem.at, GUARD_BYTE, GUARD);
	memset(mem.at + SIZE - GUARD, GUARD_BYTE, GUARD);
	pd = ibv_alloc_pd(link_device());
	if (!pd)
		board_fail("ibv_alloc_pd: %m");
	disturb_add_common(&mem, pd);
}

uint32_t words_life(void)
{
	return my_life;
}

struct ibv_mr *words_register(struct ibv_pd *of, unsigned access, bool all)
{
	struct ibv_mr *mr = ibv_reg_mr(of, all ? NULL : mem.at, all ? SIZE_MAX : SIZE, access);

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
	memset(e->counted, 0, sizeof e->counted);
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
	struct word_tally *t = &e->counted[q->word];
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
	t->n++;
	t->sum += found;
	t->squares += found * found;
}

static void add(struct word_tally *to, const struct word_tally *t)
{
	to->n += t->n;
	to->sum += t->sum;
	to->squares += t->squares;
}

static const struct tally_half *valid(const struct tally *t)
{
	return &t->half[atomic_load(&t->turn) & 1];
}

void words_commit(struct end *e)
{
	struct tally *t = &board->link[e->link].tally[e->side];
	const struct tally_half *was = valid(t);
	struct tally_half *next = &t->half[!(atomic_load(&t->turn) & 1)];

	*next = (struct tally_half){.rounds = was->rounds + 1, .life = e->peer.life};
	for (unsigned i = 0; i < WORDS; i++) {
		if (was->life == e->peer.life)
			next->word[i] = was->word[i];
		add(&next->word[i], &e->counted[i]);
	}
	atomic_fetch_add(&t->turn, 1);
}

uint64_t words_rounds(unsigned link, unsigned side)
{
	return valid(&board->link[link].tally[side])->rounds;
}

void words_unknown(unsigned i, uint64_t n)
{
	atomic_fetch_add(&unknown[i], n);
}

/* What all ends have counted of a word of ours. */
static struct word_tally counted(unsigned player, unsigned word)
{
	struct word_tally sum = {0};

	for (unsigned i = 0; i < 2 * BOARD_LINKS; i++) {
		const struct tally_half *h = valid(&board->link[i / 2].tally[i % 2]);

		if (players_at(i / 2, !(i % 2)) == (int)player && h->life == my_life)
			add(&sum, &h->word[word]);
	}
	return sum;
}

/*
 * Can so many different numbers below limit, at most most, have that sum, and that sum of squares?
 * (For more than one this is less than it could be.)
 */
static bool can_be(const struct word_tally *t, uint64_t most, uint64_t limit)
{
	uint64_t n = t->n;

	if (n > most)
		return false;
	if (n <= 1)
		return n ? t->sum < limit && t->squares == t->sum * t->sum : !t->sum && !t->squares;
	return t->sum >= n * (n - 1) / 2 && t->sum <= n * (limit - 1) - n * (n - 1) / 2 &&
	       t->squares <= t->sum * (limit - 1);
}

void words_check(unsigned player)
{
	for (unsigned i = 0; i < WORDS; i++) {
		struct word_tally t = counted(player, i), rest;
		uint64_t is, most = atomic_load(&unknown[i]);

		memory_get(&mem, offsets[i], &is, sizeof is);
		rest = (struct word_tally){is - t.n, -t.sum, -t.squares};
		for (uint64_t k = 0; k < is; k++) {
			rest.sum += k;
			rest.squares += k * k;
		}
		if (is < t.n || !can_be(&rest, most, is))
			board_fail("common word %u of player %u, %s memory, is %llu, and %llu "
				   "atomics have counted it up, and at most %llu of the dead; the "
				   "sum of what those of the living found is off by %lld",
				i, player, memory_name(mem.kind), (unsigned long long)is,
				(unsigned long long)t.n, (unsigned long long)most,
				(long long)-rest.sum);
	}
}
