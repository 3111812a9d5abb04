// SPDX-License-Identifier: BSD-3-Clause
/*
 * hca/seg/token.h: three processes add one work item each and look at the queue; nobody waits.  At
 * most one executes at a time, and no item is left over by those that went home.
 */
#include "hca/seg/token.h"
#include "models.h"

enum { POSTERS = 3, WEFTD = POSTERS };

enum token_mutant {
	DROP_IGNORES_KICK = 1,
	TAKE_LEAVES_NO_KICK,
	KICK_SEEN_IS_ENOUGH, /* no read-modify-write if the kick is there already */
	KICK_NOT_CONSUMED,
	TAKE_NOT_ATOMIC,
	FORCE_WITHOUT_LOOK,
	FORCE_KEEPS_OWNER_OF_OTHERS, /* frees whoever holds it */
};

static struct {
	_Atomic uint64_t tok;
	_Atomic uint32_t posted[POSTERS], done[POSTERS];
	int holder; /* ghost: process + 1 */
	int runs[POSTERS];
} w;

static bool take(uint64_t owner)
{
	uint64_t v;

	if (model_mutant == TAKE_NOT_ATOMIC) {
		v = atomic_load_explicit(&w.tok, memory_order_relaxed);
		if (v & TOKEN_OWNER_MASK)
			return token_take(&w.tok, owner);
		atomic_store_explicit(&w.tok, v | owner, memory_order_seq_cst);
		return true;
	}
	if (model_mutant == TAKE_LEAVES_NO_KICK || model_mutant == KICK_SEEN_IS_ENOUGH) {
		v = atomic_load_explicit(&w.tok, memory_order_relaxed);
		if (v & TOKEN_OWNER_MASK && (model_mutant == TAKE_LEAVES_NO_KICK || v & TOKEN_KICK))
			return false;
	}
	return token_take(&w.tok, owner);
}

static enum token_drop_result drop(uint64_t owner)
{
	uint64_t v;

	if (model_mutant == DROP_IGNORES_KICK) {
		v = atomic_load_explicit(&w.tok, memory_order_relaxed);
		atomic_exchange_explicit(
			&w.tok, (v & TOKEN_GEN_MASK) + TOKEN_GEN_ONE, memory_order_seq_cst);
		return TOKEN_DROPPED;
	}
	if (model_mutant == KICK_NOT_CONSUMED) {
		v = atomic_load_explicit(&w.tok, memory_order_relaxed);
		if (v & TOKEN_KICK)
			return TOKEN_KICKED;
	}
	return token_drop(&w.tok, owner);
}

static void execute(int item, int self)
{
	mc_check(w.holder == self + 1, "executes without the token");
	w.runs[item]++;
	mc_step("execute");
	mc_check(w.holder == self + 1, "two execute at a time");
	atomic_store_explicit(&w.done[item], 1, memory_order_release);
}

static void look(int self)
{
	uint64_t owner = token_owner(self + 1, 0);
	enum token_drop_result r;

	if (!take(owner))
		return;
	mc_check(!w.holder, "the token has two holders");
	w.holder = self + 1;
	do {
		for (int i = 0; i < POSTERS; i++)
			if (atomic_load_explicit(&w.posted[i], memory_order_acquire) &&
				!atomic_load_explicit(&w.done[i], memory_order_acquire))
				execute(i, self);
		r = drop(owner);
		mc_check(r != TOKEN_LOST, "a live holder lost the token");
	} while (r == TOKEN_KICKED);
	w.holder = 0;
}

static void poster(int i)
{
	atomic_store_explicit(&w.posted[i], 1, memory_order_relaxed);
	look(i);
}

static void weftd(int arg)
{
	(void)arg;
	if (model_mutant == FORCE_KEEPS_OWNER_OF_OTHERS) {
		uint64_t v = atomic_load_explicit(&w.tok, memory_order_relaxed);

		token_force(&w.tok, token_attach(v));
	} else if (!token_force(&w.tok, mc_dead() + 1)) {
		return;
	}
	w.holder = 0;
	if (model_mutant != FORCE_WITHOUT_LOOK)
		look(WEFTD);
}

static void final(void)
{
	for (int i = 0; i < POSTERS; i++) {
		bool stuck = mc_stopped() >= 0 && w.holder == mc_stopped() + 1;

		if (mc_finished(i))
			mc_check(w.done[i] || stuck, "work left over by somebody who went home");
		mc_check(w.runs[i] < 2 || mc_dead() >= 0, "executed twice without a death");
	}
	mc_check(mc_stopped() >= 0 || !w.holder, "the token is held by nobody alive");
}

static const struct mc_thread threads[] = {
	{.name = "poster 0", .run = poster, .arg = 0, .proc = 0},
	{.name = "poster 1", .run = poster, .arg = 1, .proc = 1},
	{.name = "responder", .run = poster, .arg = 2, .proc = 2},
	{.name = "weftd", .run = weftd, .recovery = true},
};

#define MODEL(mem, events)                                                                         \
	{                                                                                          \
		.name = "token", .state = &w, .size = sizeof(w), .memory = (mem), .final = final,  \
		.threads = threads, .n_threads = 4, .may_stop = (events), .may_die = (events),     \
		.max_steps = 150, .max_states = 4000000                                            \
	}

const struct model_case token_cases[] = {
	{"three parties", MODEL(MC_TSO, 0)},
	{"three parties, weak stores", MODEL(MC_PSO, 0)},
	{"three parties, stop or death", MODEL(MC_TSO, 7)},
	{"drop ignores the kick", MODEL(MC_TSO, 0), DROP_IGNORES_KICK},
	{"take leaves no kick", MODEL(MC_TSO, 0), TAKE_LEAVES_NO_KICK},
	{"no RMW if kicked already", MODEL(MC_TSO, 0), KICK_SEEN_IS_ENOUGH},
	{"kick is not consumed", MODEL(MC_TSO, 0), KICK_NOT_CONSUMED},
	{"take is not atomic", MODEL(MC_TSO, 0), TAKE_NOT_ATOMIC},
	{"force without a new look", MODEL(MC_TSO, 7), FORCE_WITHOUT_LOOK},
	{"force frees anybody", MODEL(MC_TSO, 7), FORCE_KEEPS_OWNER_OF_OTHERS},
	{0},
};
