// SPDX-License-Identifier: BSD-3-Clause
/*
 * mad/tids.h: two processes enter the same transaction of a umad file while weftd strikes another
 * one out, and may be stopped or die.  It is never under way twice; who is alone is not refused;
 * and what a dead one entered without sending it is struck out.
 */
#include "mad/tids.h"
#include "models.h"

enum { WEFTD, WRITERS = 2, OTHER = 7, SAME = 8 };

enum tids_mutant {
	NO_SECOND_LOOK = 1, /* who has entered it does not look for another */
	PLAIN_STORE,        /* entered without a compare-and-swap */
	NOBODY_SWEEPS,
};

static struct {
	struct tids tids;
	/* ghosts */
	uint8_t entered[1 + WRITERS], refused[1 + WRITERS];
} w;

static void init(void)
{
	tids_enter(&w.tids, OTHER, 1);
}

/* tids_enter(), but for the defect. */
static enum tids_result badly_enter(uint16_t lane)
{
	struct tids_bucket *b = tids_bucket(&w.tids, SAME);
	uint64_t entry = tids_entry(SAME, lane);
	unsigned i;

	if (tids_find(b, entry, TIDS_BUCKET) < TIDS_BUCKET)
		return TIDS_DUPLICATE;
	if (model_mutant == NO_SECOND_LOOK)
		return tids_place(b, entry) < TIDS_BUCKET ? TIDS_ENTERED : TIDS_UNLISTED;
	for (i = 0; i < TIDS_BUCKET; i++)
		if (!atomic_load_explicit(&b->entry[i], memory_order_relaxed))
			break;
	if (i == TIDS_BUCKET)
		return TIDS_UNLISTED;
	atomic_store_explicit(&b->entry[i], entry, memory_order_relaxed);
	return tids_find(b, entry, i) == TIDS_BUCKET ? TIDS_ENTERED : TIDS_DUPLICATE;
}

static void writer(int lane)
{
	bool bad = model_mutant == NO_SECOND_LOOK || model_mutant == PLAIN_STORE;
	enum tids_result result =
		bad ? badly_enter((uint16_t)lane) : tids_enter(&w.tids, SAME, (uint16_t)lane);

	w.entered[lane] = result == TIDS_ENTERED;
	w.refused[lane] = result == TIDS_DUPLICATE;
	mc_check(!(w.entered[1] && w.entered[2]), "under way twice");
}

/* In the place of a writer. */
static void nobody(int lane)
{
	(void)lane;
}

static void weftd(int arg)
{
	(void)arg;
	tids_strike(&w.tids, OTHER, 1);
}

static bool sent(void *arg, uint64_t entry)
{
	(void)arg, (void)entry;
	return false;
}

static void after_death(int arg)
{
	(void)arg;
	if (model_mutant != NOBODY_SWEEPS)
		tids_sweep(&w.tids, (uint16_t)mc_dead(), sent, NULL);
}

static bool is_there(uint16_t lane)
{
	struct tids_bucket *b = tids_bucket(&w.tids, SAME);

	for (unsigned i = 0; i < TIDS_BUCKET; i++)
		if (b->entry[i] == tids_entry(SAME, lane))
			return true;
	return false;
}

static void final(void)
{
	bool alone = mc_current_model()->threads[2].run == nobody;

	mc_check(!alone || !w.refused[1], "refused without another");
	for (uint16_t i = 1; i <= WRITERS; i++) {
		if (mc_dead() == i)
			mc_check(!is_there(i), "what a dead one entered stays");
		else if (mc_stopped() != i)
			mc_check(
				is_there(i) == w.entered[i], "the table has what is not under way");
	}
}

#define THREADS(second)                                                                            \
	{                                                                                          \
		{.name = "weftd", .run = weftd, .proc = WEFTD},                                    \
			{.name = "writer 1", .run = writer, .arg = 1, .proc = 1},                  \
			{.name = "writer 2", .run = (second), .arg = 2, .proc = 2},                \
			{.name = "after death", .run = after_death, .recovery = true},             \
	}

static const struct mc_thread two[] = THREADS(writer);
static const struct mc_thread one[] = THREADS(nobody);

#define MODEL(t, stops, dies)                                                                      \
	{                                                                                          \
		.name = "umad_tids", .state = &w, .size = sizeof(w), .memory = MC_TSO,             \
		.init = init, .final = final, .threads = (t), .n_threads = 4, .may_stop = (stops), \
		.may_die = (dies), .max_steps = 100, .max_states = 12000000                        \
	}

const struct model_case umad_tids_cases[] = {
	{"2 writers", MODEL(two, 0, 0)},
	{"2 writers, a stop", MODEL(two, 2, 0)},
	{"2 writers, a death", MODEL(two, 0, 2)},
	{"1 writer", MODEL(one, 0, 0)},
	{"no second look", MODEL(two, 0, 0), NO_SECOND_LOOK},
	{"entered by a plain store", MODEL(two, 0, 0), PLAIN_STORE},
	{"nobody sweeps", MODEL(two, 0, 2), NOBODY_SWEEPS},
	{0},
};
