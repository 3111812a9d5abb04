// SPDX-License-Identifier: BSD-3-Clause
/*
 * hca/seg/arm.h: producers push and fire, the consumer arms, polls once more and sleeps until the
 * next event; or it leaves the look after arming to the CQ, which fires itself for what is there.
 * A completion whose producer went home is always seen, also when another producer
 * was stopped between FIRING and its write; after a death weftd fires once more.
 */
#include "hca/seg/arm.h"
#include "models.h"

enum { PRODUCERS = 3, CONSUMER_PROC = 3 };

enum arm_mutant {
	FIRED_ENDS_LATER_ARM = 1, /* arm_fired() without the count of arms */
	ARM_WITHOUT_POLL,
	FIRING_MEANS_DONE, /* who finds FIRING leaves it to the other */
	ARM_PLAIN_STORE,   /* no fence between arm and poll */
	FIRED_BEFORE_WRITE,
	NO_FIRE_AFTER_DEATH,
	LOOK_BEFORE_ARM, /* the CQ looks what is there, then is armed */
	TOLD_OF_ALL,     /* what waits is not told again, however much it is */
};

static struct {
	_Atomic uint32_t arm;
	_Atomic uint32_t events;
	_Atomic uint32_t pushed[PRODUCERS];
	uint32_t got[PRODUCERS]; /* ghost */
	bool told;
} w;

/* Arguments of producers. */
enum { WHO = 3, TWICE = 4, UNSOLICITED = 8 };
/* Arguments of the consumer. */
enum { ARM_BY_TURNS = 1, ARM_ONLY_SOLICITED = 2 };

static void fired(uint32_t word)
{
	uint32_t v;

	if (model_mutant != FIRED_ENDS_LATER_ARM) {
		arm_fired(&w.arm, word);
		return;
	}
	v = atomic_load_explicit(&w.arm, memory_order_relaxed);
	while ((v & ARM_STATE_MASK) == ARM_FIRING)
		if (atomic_compare_exchange_strong_explicit(&w.arm, &v, v & ~ARM_STATE_MASK,
			    memory_order_seq_cst, memory_order_relaxed))
			break;
}

static void fire(bool solicited)
{
	uint32_t v, word;

	if (model_mutant == FIRING_MEANS_DONE) {
		v = atomic_load_explicit(&w.arm, memory_order_seq_cst);
		if ((v & ARM_STATE_MASK) == ARM_FIRING)
			return;
	}
	word = arm_must_fire(&w.arm, solicited);
	if (!word)
		return;
	if (model_mutant == FIRED_BEFORE_WRITE)
		fired(word);
	atomic_fetch_add_explicit(&w.events, 1, memory_order_seq_cst);
	if (model_mutant != FIRED_BEFORE_WRITE)
		fired(word);
}

static void producer(int arg)
{
	int n = arg & TWICE ? 2 : 1;

	for (int i = 0; i < n; i++) {
		mc_forget(2, i);
		/* stands for ticket_push(): a full fence lies behind it */
		atomic_fetch_add_explicit(&w.pushed[arg & WHO], 1, memory_order_seq_cst);
		fire(!(arg & UNSOLICITED));
	}
}

/* In the place of a producer, where the consumer fires, too. */
static void nobody(int arg)
{
	(void)arg;
}

static void poll_all(void)
{
	for (int i = 0; i < PRODUCERS; i++)
		w.got[i] = atomic_load_explicit(&w.pushed[i], memory_order_acquire);
}

static bool solicits(int thread);

/* What the owner finds in the ring after it armed. */
static bool waits(int arg)
{
	bool found = false;

	for (int i = 0; i < PRODUCERS; i++)
		if (atomic_load_explicit(&w.pushed[i], memory_order_acquire) != w.got[i])
			found |= !(arg & ARM_ONLY_SOLICITED) || solicits(i);
	return found;
}

static unsigned count_waiting(void)
{
	unsigned n = 0;

	for (int i = 0; i < PRODUCERS; i++)
		n += atomic_load_explicit(&w.pushed[i], memory_order_acquire) - w.got[i];
	return n;
}

/* hca_cq_arm() */
static void arm(int arg)
{
	bool before = model_mutant == LOOK_BEFORE_ARM && waits(arg);

	arm_set(&w.arm, arg & ARM_ONLY_SOLICITED);
	if (w.told && (model_mutant == TOLD_OF_ALL || count_waiting() == 1))
		return;
	if (model_mutant == LOOK_BEFORE_ARM ? before : waits(arg))
		fire(true);
}

static void poll_one(void)
{
	for (int i = 0; i < PRODUCERS; i++)
		if (atomic_load_explicit(&w.pushed[i], memory_order_acquire) != w.got[i]) {
			w.got[i]++;
			break;
		}
	w.told = false;
}

/* Takes an event, arms, and only then polls, and one completion. */
static void hasty_consumer(int arg)
{
	arm(arg);
	for (uint32_t seen = 0;; seen++) {
		mc_forget(1, seen);
		mc_wait_change(&w.events, sizeof(w.events), seen);
		w.told = count_waiting() == 1;
		arm(arg);
		poll_one();
	}
}

/* Arms, sleeps, and polls when it was woken. */
static void trusting_consumer(int arg)
{
	for (uint32_t seen = 0;; seen++) {
		mc_forget(1, seen);
		arm(arg);
		mc_wait_change(&w.events, sizeof(w.events), seen);
		poll_all();
	}
}

static void consumer(int arg)
{
	for (uint32_t seen = 0;; seen++) {
		mc_forget(1, seen);
		if (model_mutant == ARM_PLAIN_STORE)
			atomic_store_explicit(&w.arm, ARM_ANY, memory_order_relaxed);
		else
			arm_set(&w.arm, arg & ARM_ONLY_SOLICITED);
		if (arg & ARM_BY_TURNS) /* asks for less: what was asked for stays */
			arm_set(&w.arm, true);
		if (model_mutant != ARM_WITHOUT_POLL)
			poll_all();
		mc_wait_change(&w.events, sizeof(w.events), seen);
		if (model_mutant == ARM_WITHOUT_POLL)
			poll_all();
	}
}

static void weftd(int arg)
{
	(void)arg;
	if (model_mutant != NO_FIRE_AFTER_DEATH)
		atomic_fetch_add_explicit(&w.events, 1, memory_order_seq_cst);
}

static void final(void)
{
	for (int i = 0; i < PRODUCERS; i++)
		if ((mc_finished(i) && solicits(i)) || mc_dead() == i)
			mc_check(w.got[i] == w.pushed[i], "lost wake-up: the consumer sleeps on");
}

static const struct mc_thread threads[] = {
	{.name = "producer 0", .run = producer, .arg = 0, .proc = 0},
	{.name = "producer 1", .run = producer, .arg = 1, .proc = 1},
	{.name = "producer 2", .run = producer, .arg = 2, .proc = 2},
	{.name = "consumer", .run = consumer, .proc = CONSUMER_PROC},
	{.name = "weftd", .run = weftd, .recovery = true},
};

static const struct mc_thread twice[] = {
	{.name = "producer 0", .run = producer, .arg = 0 | TWICE, .proc = 0},
	{.name = "producer 1", .run = producer, .arg = 1 | TWICE, .proc = 1},
	{.name = "producer 2", .run = producer, .arg = 2, .proc = 2},
	{.name = "consumer", .run = consumer, .proc = CONSUMER_PROC},
	{.name = "weftd", .run = weftd, .recovery = true},
};

static const struct mc_thread by_turns[] = {
	{.name = "producer 0", .run = producer, .arg = 0 | UNSOLICITED, .proc = 0},
	{.name = "producer 1", .run = producer, .arg = 1, .proc = 1},
	{.name = "producer 2", .run = producer, .arg = 2 | UNSOLICITED, .proc = 2},
	{.name = "consumer", .run = consumer, .arg = ARM_BY_TURNS, .proc = CONSUMER_PROC},
	{.name = "weftd", .run = weftd, .recovery = true},
};

static const struct mc_thread solicited[] = {
	{.name = "producer 0", .run = producer, .arg = 0 | UNSOLICITED, .proc = 0},
	{.name = "producer 1", .run = producer, .arg = 1, .proc = 1},
	{.name = "producer 2", .run = producer, .arg = 2, .proc = 2},
	{.name = "consumer", .run = consumer, .arg = ARM_ONLY_SOLICITED, .proc = CONSUMER_PROC},
	{.name = "weftd", .run = weftd, .recovery = true},
};

static const struct mc_thread trusting[] = {
	{.name = "producer 0", .run = producer, .arg = 0, .proc = 0},
	{.name = "producer 1", .run = producer, .arg = 1, .proc = 1},
	{.name = "nobody", .run = nobody, .proc = 2},
	{.name = "consumer", .run = trusting_consumer, .proc = CONSUMER_PROC},
	{.name = "weftd", .run = weftd, .recovery = true},
};

static const struct mc_thread trusting_solicited[] = {
	{.name = "producer 0", .run = producer, .arg = 0 | UNSOLICITED, .proc = 0},
	{.name = "producer 1", .run = producer, .arg = 1, .proc = 1},
	{.name = "nobody", .run = nobody, .proc = 2},
	{.name = "consumer",
		.run = trusting_consumer,
		.arg = ARM_ONLY_SOLICITED,
		.proc = CONSUMER_PROC},
	{.name = "weftd", .run = weftd, .recovery = true},
};

static const struct mc_thread hasty[] = {
	{.name = "producer 0", .run = producer, .arg = 0, .proc = 0},
	{.name = "producer 1", .run = producer, .arg = 1, .proc = 1},
	{.name = "nobody", .run = nobody, .proc = 2},
	{.name = "consumer", .run = hasty_consumer, .proc = CONSUMER_PROC},
	{.name = "weftd", .run = weftd, .recovery = true},
};

static bool solicits(int thread)
{
	const struct mc_thread *t = mc_current_model()->threads;

	return !(t[PRODUCERS].arg & ARM_ONLY_SOLICITED) || !(t[thread].arg & UNSOLICITED);
}

#define MODEL(t, mem, events)                                                                      \
	{                                                                                          \
		.name = "arm", .state = &w, .size = sizeof(w), .memory = (mem), .final = final,    \
		.threads = (t), .n_threads = 5, .may_stop = (events), .may_die = (events),         \
		.may_block = true, .max_steps = 100, .max_states = 12000000                        \
	}

const struct model_case arm_cases[] = {
	{"any completion", MODEL(threads, MC_TSO, 7)},
	{"any completion, twice", MODEL(twice, MC_TSO, 7), .slow = true},
	{"any, then only solicited", MODEL(by_turns, MC_TSO, 0)},
	{"only solicited", MODEL(solicited, MC_TSO, 7)},
	{"the CQ looks", MODEL(trusting, MC_TSO, 7)},
	{"the CQ looks for solicited ones", MODEL(trusting_solicited, MC_TSO, 7)},
	{"armed before one is polled", MODEL(hasty, MC_TSO, 0)},
	{"told of all that waits", MODEL(hasty, MC_TSO, 0), TOLD_OF_ALL},
	{"the CQ looks before it is armed", MODEL(trusting, MC_TSO, 0), LOOK_BEFORE_ARM},
	{"fired ends a later arm", MODEL(threads, MC_TSO, 7), FIRED_ENDS_LATER_ARM},
	{"arm without a poll after it", MODEL(threads, MC_TSO, 0), ARM_WITHOUT_POLL},
	{"FIRING left to the other", MODEL(threads, MC_TSO, 7), FIRING_MEANS_DONE},
	{"arm without a fence", MODEL(threads, MC_TSO, 0), ARM_PLAIN_STORE},
	{"fired before the write", MODEL(threads, MC_TSO, 7), FIRED_BEFORE_WRITE},
	{"no fire after a death", MODEL(threads, MC_TSO, 7), NO_FIRE_AFTER_DEATH},
	{0},
};
