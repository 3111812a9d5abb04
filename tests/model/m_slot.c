// SPDX-License-Identifier: BSD-3-Clause
/*
 * hca/seg/slot.h: executors use memory under a key while its owner takes the key away and frees the
 * memory.  Nobody uses it after that; a stopped executor delays the owner only.  One that promised
 * to use mapped memory alone does not even do that: it is passed, and what it stored too late it
 * does not take for done.
 */
#include "hca/seg/slot.h"

#include "hca/seg/token.h"
#include "models.h"

enum {
	EXECUTORS = 2,
	OWNER_PROC = EXECUTORS,
	OWNER_ATTACH = 7,
	ROUNDS_TWO = 8,
	PROMISES = 16, /* to use mapped memory alone */
	CALLS = 32,    /* but then needs a system call */
	PASSES = 1,    /* the owner waits for none that promised */
};

enum slot_mutant {
	CLEAR_WITHOUT_FENCE = 1,
	KEY_BEFORE_TOKEN,
	NO_WAIT,
	LEAVE_BEFORE_USE_ENDS,
	TOKEN_WITHOUT_FENCE, /* the token is taken by plain load and store */
	WAIT_FOR_SOURCES_ONLY,
	KEY_KEPT_OVER_KICK, /* looks again after a kick with the key it read before */
	CALL_UNANNOUNCED,   /* a system call under the promise to make none */
	CALL_UNCHECKED,     /* announced, but without another look at the key */
	CALL_WITHOUT_FENCE, /* ... or without a fence between the two */
	PASS_UNTOLD,        /* the executor is not told that it was passed */
	PASS_UNASKED,       /* ... or does not ask */
	ALL_PASSED,         /* also those that did not promise */
};

static struct {
	struct exec_slot slot[EXECUTORS];
	_Atomic uint64_t tok[EXECUTORS]; /* each executor's direction has its own */
	_Atomic uint32_t key;
	/* ghosts */
	bool freed; /* dereg has returned */
	bool moved; /* the memory is not in the arena any more */
	bool late;  /* executor 0 stored after that */
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

static void use_mapped(int i)
{
	mc_step("store");
	w.late = w.moved;
	if (model_mutant != PASS_UNASKED && slot_passed(&w.slot[i]) &&
		!atomic_load_explicit(&w.key, memory_order_acquire))
		return; /* an error */
	mc_check(!w.late, "success for a store that nobody sees");
}

static void use_by_call(int i)
{
	struct exec_slot *s = &w.slot[i];

	if (model_mutant == CALL_WITHOUT_FENCE)
		atomic_store_explicit(&s->word,
			slot_word(++s->seq, i + 1, OWNER_ATTACH, SLOT_WAYS_ANY),
			memory_order_release);
	else if (model_mutant != CALL_UNANNOUNCED)
		slot_step(s, i + 1, OWNER_ATTACH, SLOT_WAYS_ANY);
	if (model_mutant == CALL_UNCHECKED || atomic_load_explicit(&w.key, memory_order_acquire))
		use();
}

static void promised_round(int arg)
{
	int i = arg & 7;
	uint64_t owner = token_owner(i + 1, 0);

	slot_enter_as(&w.slot[i], i + 1, OWNER_ATTACH, SLOT_WAYS_MAPPED);
	if (take(i, owner)) {
		if (atomic_load_explicit(&w.key, memory_order_acquire)) {
			if (arg & CALLS)
				use_by_call(i);
			else
				use_mapped(i);
		}
		token_drop(&w.tok[i], owner);
	}
	slot_leave(&w.slot[i]);
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
		if (arg & PROMISES)
			promised_round(arg);
		else
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

/* Goes on without this one? */
static bool pass(struct exec_slot *s, uint64_t busy)
{
	if (!(busy & SLOT_MAPPED) && model_mutant != ALL_PASSED)
		return false;
	if (model_mutant != PASS_UNTOLD)
		atomic_store_explicit(&s->passed, busy, memory_order_seq_cst);
	atomic_thread_fence(memory_order_seq_cst);
	return true;
}

static void owner(int arg)
{
	atomic_store_explicit(&w.key, 0, memory_order_relaxed);
	if (model_mutant != CLEAR_WITHOUT_FENCE)
		atomic_thread_fence(memory_order_seq_cst);
	for (int i = 0; i < EXECUTORS && model_mutant != NO_WAIT; i++) {
		uint64_t busy = slot_busy(&w.slot[i].word, OWNER_ATTACH);

		if (model_mutant == WAIT_FOR_SOURCES_ONLY &&
			(busy & SLOT_ATTACH_MASK) != OWNER_ATTACH)
			busy = 0;
		if (busy && !(arg & PASSES && pass(&w.slot[i], busy)))
			mc_wait_change(&w.slot[i].word, sizeof(w.slot[i].word), busy);
	}
	w.moved = true;
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

/* Executor 0 writes what is mapped, or finds that it must copy; executor 1 promises nothing. */
static const struct mc_thread mapped_threads[] = {
	{.name = "executor 0", .run = executor, .arg = 0 | ROUNDS_TWO | PROMISES, .proc = 0},
	{.name = "executor 1", .run = executor, .arg = 1, .proc = 1},
	{.name = "owner", .run = owner, .arg = PASSES, .proc = OWNER_PROC},
	{.name = "weftd", .run = weftd, .recovery = true},
};

static const struct mc_thread call_threads[] = {
	{.name = "executor 0",
		.run = executor,
		.arg = 0 | ROUNDS_TWO | PROMISES | CALLS,
		.proc = 0},
	{.name = "executor 1", .run = executor, .arg = 1, .proc = 1},
	{.name = "owner", .run = owner, .arg = PASSES, .proc = OWNER_PROC},
	{.name = "weftd", .run = weftd, .recovery = true},
};

static void final(void)
{
	bool promised = mc_current_model()->threads == mapped_threads && mc_stopped() == 0;

	if (mc_stopped() < 0 || promised)
		mc_check(mc_finished(2), "dereg waits for nobody");
	for (int i = 0; i < mc_current_model()->n_threads; i++)
		mc_check(i == 2 || i == 3 || mc_finished(i) || mc_stopped() == i || mc_dead() == i,
			"an executor is delayed by others");
}

#define MODEL_OF(t, n, mem, events)                                                                \
	{                                                                                          \
		.name = "slot", .state = &w, .size = sizeof(w), .memory = (mem), .init = init,     \
		.final = final, .threads = (t), .n_threads = (n), .may_stop = (events),            \
		.may_die = (events), .may_block = true, .max_steps = 100, .max_states = 12000000   \
	}
#define MODEL(n, mem, events) MODEL_OF(threads, n, mem, events)

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
	{"mapped memory", MODEL_OF(mapped_threads, 4, MC_TSO, 3)},
	{"mapped memory, weak stores", MODEL_OF(mapped_threads, 4, MC_PSO, 3)},
	{"a call after all", MODEL_OF(call_threads, 4, MC_TSO, 3)},
	{"a call after all, weak stores", MODEL_OF(call_threads, 4, MC_PSO, 3)},
	{"a call unannounced", MODEL_OF(call_threads, 4, MC_TSO, 0), CALL_UNANNOUNCED},
	{"a call without another look", MODEL_OF(call_threads, 4, MC_TSO, 0), CALL_UNCHECKED},
	{"a call without a fence", MODEL_OF(call_threads, 4, MC_TSO, 0), CALL_WITHOUT_FENCE},
	{"passed and not told", MODEL_OF(mapped_threads, 4, MC_TSO, 0), PASS_UNTOLD},
	{"passed and not asked", MODEL_OF(mapped_threads, 4, MC_TSO, 0), PASS_UNASKED},
	{"all passed", MODEL_OF(mapped_threads, 4, MC_TSO, 0), ALL_PASSED},
	{0},
};
