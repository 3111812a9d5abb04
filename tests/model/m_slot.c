// SPDX-License-Identifier: BSD-3-Clause
/*
 * hca/slot.h: executors use memory under a key while its owner takes the key away and frees the
 * memory.  Nobody uses it after that; a stopped executor delays the owner only.
 */
#include "hca/slot.h"

#include "hca/token.h"
#include "models.h"

enum { EXECUTORS = 2, OWNER_PROC = EXECUTORS, OWNER_ATTACH = 7, ROUNDS_TWO = 8 };

enum slot_mutant {
	CLEAR_WITHOUT_FENCE = 1,
	KEY_BEFORE_TOKEN,
	NO_WAIT,
	LEAVE_BEFORE_USE_ENDS,
	TOKEN_WITHOUT_FENCE, /* the token is taken by plain load and store */
	WAIT_FOR_SOURCES_ONLY,
	KEY_KEPT_OVER_KICK, /* looks again after a kick with the key it read before */
};

static struct {
	struct exec_slot slot[EXECUTORS];
	_Atomic uint64_t tok[EXECUTORS]; /* each executor's direction has its own */
	_Atomic uint32_t key;
	bool freed; /* ghost */
} w;

static void init(void)
{
	w.key = 1;
}

static bool take(int i, uint64_t owner)
{
	if (model_mutant != TOKEN_WITHOUT_FENCE)
		return token_take(&w.tok[i], owner);
	if (atomic_load_explicit(&w.tok[i], memory_order_relaxed) & TOKEN_OWNER_MASK)
		return token_take(&w.tok[i], owner);
	atomic_store_explicit(&w.tok[i], owner, memory_order_relaxed);
	return true;
}

static void use(void)
{
	mc_check(!w.freed, "memory used after dereg returned");
	mc_step("use");
	mc_check(!w.freed, "memory used after dereg returned");
}

static void executor_round(int i)
{
	uint64_t owner = token_owner(i + 1, 0);
	uint32_t key = 0;
	bool again;

	if (model_mutant == KEY_BEFORE_TOKEN)
		key = atomic_load_explicit(&w.key, memory_order_acquire);
	slot_enter(&w.slot[i], i + 1, OWNER_ATTACH);
	if (!take(i, owner)) {
		slot_leave(&w.slot[i]);
		return;
	}
	if (model_mutant == KEY_KEPT_OVER_KICK)
		key = atomic_load_explicit(&w.key, memory_order_acquire);
	do {
		if (model_mutant != KEY_BEFORE_TOKEN && model_mutant != KEY_KEPT_OVER_KICK)
			key = atomic_load_explicit(&w.key, memory_order_acquire);
		if (model_mutant == LEAVE_BEFORE_USE_ENDS)
			slot_leave(&w.slot[i]);
		if (key)
			use();
		again = token_drop(&w.tok[i], owner) == TOKEN_KICKED;
		if (again && model_mutant == KEY_KEPT_OVER_KICK) {
			/* what a holder does that ends its stay here and starts another */
			slot_leave(&w.slot[i]);
			slot_enter(&w.slot[i], i + 1, OWNER_ATTACH);
		}
	} while (again);
	slot_leave(&w.slot[i]);
}

static void executor(int arg)
{
	int rounds = arg & ROUNDS_TWO ? 2 : 1;

	for (int r = 0; r < rounds; r++) {
		mc_forget(1, r);
		executor_round(arg & 7);
	}
}

/* Looks at the queue of executor 0, too: the requester's own thread; leaves a kick at least. */
static void kicker(int arg)
{
	uint64_t owner = token_owner(9, 0);

	(void)arg;
	if (token_take(&w.tok[0], owner))
		while (token_drop(&w.tok[0], owner) == TOKEN_KICKED)
			;
}

static void owner(int arg)
{
	(void)arg;
	atomic_store_explicit(&w.key, 0, memory_order_relaxed);
	if (model_mutant != CLEAR_WITHOUT_FENCE)
		atomic_thread_fence(memory_order_seq_cst);
	for (int i = 0; i < EXECUTORS && model_mutant != NO_WAIT; i++) {
		uint64_t busy = slot_busy(&w.slot[i].word, OWNER_ATTACH);

		if (model_mutant == WAIT_FOR_SOURCES_ONLY &&
			(busy & SLOT_ATTACH_MASK) != OWNER_ATTACH)
			busy = 0;
		if (busy)
			mc_wait_change(&w.slot[i].word, sizeof(w.slot[i].word), busy);
	}
	w.freed = true;
}

/* Clears the slots of a dead process. */
static void weftd(int arg)
{
	(void)arg;
	atomic_exchange_explicit(&w.slot[mc_dead()].word, 0, memory_order_seq_cst);
	token_force(&w.tok[mc_dead()], mc_dead() + 1);
}

static const struct mc_thread threads[] = {
	{.name = "executor 0", .run = executor, .arg = 0 | ROUNDS_TWO, .proc = 0},
	{.name = "executor 1", .run = executor, .arg = 1, .proc = 1},
	{.name = "owner", .run = owner, .proc = OWNER_PROC},
	{.name = "weftd", .run = weftd, .recovery = true},
	{.name = "kicker", .run = kicker, .proc = 3},
};

static void final(void)
{
	if (mc_stopped() < 0)
		mc_check(mc_finished(2), "dereg waits for nobody");
	for (int i = 0; i < mc_current_model()->n_threads; i++)
		mc_check(i == 2 || i == 3 || mc_finished(i) || mc_stopped() == i || mc_dead() == i,
			"an executor is delayed by others");
}

#define MODEL(n, mem, events)                                                                      \
	{                                                                                          \
		.name = "slot", .state = &w, .size = sizeof(w), .memory = (mem), .init = init,     \
		.final = final, .threads = threads, .n_threads = (n), .may_stop = (events),        \
		.may_die = (events), .may_block = true, .max_steps = 100, .max_states = 12000000   \
	}

const struct model_case slot_cases[] = {
	{"two executors", MODEL(4, MC_TSO, 3)},
	{"two executors, weak stores", MODEL(4, MC_PSO, 3)},
	{"two executors and a kick", MODEL(5, MC_TSO, 3)},
	{"key cleared without a fence", MODEL(4, MC_TSO, 0), CLEAR_WITHOUT_FENCE},
	{"key read before the token", MODEL(4, MC_TSO, 0), KEY_BEFORE_TOKEN},
	{"no wait for slots", MODEL(4, MC_TSO, 0), NO_WAIT},
	{"slot left before the use", MODEL(4, MC_TSO, 0), LEAVE_BEFORE_USE_ENDS},
	{"token taken without a fence", MODEL(4, MC_TSO, 0), TOKEN_WITHOUT_FENCE},
	{"destinations not waited for", MODEL(4, MC_TSO, 0), WAIT_FOR_SOURCES_ONLY},
	{"key kept over a kick", MODEL(5, MC_TSO, 0), KEY_KEPT_OVER_KICK},
	{0},
};
