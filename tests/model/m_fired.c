// SPDX-License-Identifier: BSD-3-Clause
/*
 * hca/seg/fired.h: producers fire the CQs of a channel, each its own; the owner sleeps on the
 * channel and takes one event for each count.  Every CQ that was fired is given to the program,
 * though a producer is stopped or dies at any step, or the ring overflows; and one that fired
 * before another began to comes before it, unless the ring overflowed.
 */
#include "hca/seg/fired.h"
#include "models.h"

enum { CQS = 3, OWNER_PROC = 3, SLOTS_MAX = 4 };

enum fired_mutant {
	NO_FURTHER_WRITE = 1, /* a count that went to a stopped producer's event is lost */
	NO_SCAN,              /* the ring alone says who fired */
	ENTRY_BEFORE_FIRED,
	WRITE_BEFORE_FIRED,
	TOLD_BEFORE_WRITE,
};

static struct {
	struct ticket_ring ring;
	_Atomic uint64_t slots[SLOTS_MAX];
	_Atomic uint32_t overflow, fd;
	_Atomic uint32_t fired[CQS], told[CQS];
	/* ghosts */
	uint8_t got[CQS];
	uint8_t done;        /* CQs whose producer has fired: bits */
	uint8_t before[CQS]; /* ... when this one began */
	uint8_t full;
} w;

static uint32_t log_size;

static struct fired_ref ref(void)
{
	return (struct fired_ref){
		.ring = &w.ring, .slots = w.slots, .log_size = log_size, .overflow = &w.overflow};
}

static void init_one(void)
{
	log_size = 0;
	w.full = true;
}

static void init_two(void)
{
	log_size = 1;
	w.full = true;
}

static void init_four(void)
{
	log_size = 2;
}

static void put(int cq)
{
	struct fired_ref r = ref();
	uint32_t n;

	if (model_mutant != ENTRY_BEFORE_FIRED) {
		fired_put(&r, (uint32_t)cq, &w.fired[cq]);
		return;
	}
	n = atomic_load_explicit(&w.fired[cq], memory_order_relaxed) + 1;
	if (!ticket_push(r.ring, r.slots, r.log_size, 1u << r.log_size, fired_entry(cq, n)))
		atomic_store_explicit(r.overflow, 1, memory_order_seq_cst);
	atomic_fetch_add_explicit(&w.fired[cq], 1, memory_order_release);
}

static void write_fd(void)
{
	atomic_fetch_add_explicit(&w.fd, 1, memory_order_seq_cst);
}

/* cq_fire() */
static void fire(int cq)
{
	if (model_mutant == WRITE_BEFORE_FIRED)
		write_fd();
	put(cq);
	if (model_mutant == TOLD_BEFORE_WRITE)
		atomic_fetch_add_explicit(&w.told[cq], 1, memory_order_release);
	if (model_mutant != WRITE_BEFORE_FIRED)
		write_fd();
	if (model_mutant != TOLD_BEFORE_WRITE)
		atomic_fetch_add_explicit(&w.told[cq], 1, memory_order_release);
}

static void producer(int cq)
{
	mc_step("begins");
	w.before[cq] = w.done;
	mc_loop_at(&w.ring.tail, 0); /* each attempt of ticket_push() */
	fire(cq);
	w.done |= 1 << cq;
}

/* In the place of a producer, where two are enough. */
static void nobody(int cq)
{
	(void)cq;
}

/* After a death weftd fires each CQ that it may concern. */
static void weftd(int arg)
{
	(void)arg;
	fire(mc_dead());
}

static bool due(int cq, const uint32_t *seen)
{
	return atomic_load_explicit(&w.fired[cq], memory_order_acquire) != seen[cq];
}

/* The CQ to give out, or -1: hca/queue/channel.c's next_fired(). */
static int next_fired(const struct fired_ref *r, struct fired_reader *o, const uint32_t *seen)
{
	uint64_t e;

	while ((e = fired_pop(r, o)))
		if (due((int)fired_cq(e), seen) && fired_is_due(e, seen[fired_cq(e)]))
			return (int)fired_cq(e);
	for (int i = 0; i < CQS && model_mutant != NO_SCAN; i++)
		if (due(i, seen))
			return i;
	o->sweeps = false;
	return -1;
}

static void give(struct fired_reader *o, uint32_t *seen, int cq)
{
	if (!w.got[cq]++ && !w.full)
		for (int i = 0; i < CQS; i++)
			mc_check(!(w.before[cq] & 1 << i) || w.got[i], "out of order");
	fired_give(o, &w.told[cq], ++seen[cq]);
}

static bool owes(const struct fired_ref *r, struct fired_reader *o)
{
	bool readable = o->owes && atomic_load_explicit(&w.fd, memory_order_acquire);

	if (model_mutant == NO_FURTHER_WRITE)
		return false;
	return fired_owes(r, o, readable);
}

static void owner(int arg)
{
	struct fired_reader o = {.head = 0};
	const struct fired_ref r = ref();
	uint32_t seen[CQS] = {0};

	(void)arg;
	for (;;) {
		uint64_t past = o.head << 2 | o.sweeps << 1 | o.owes;
		int cq;

		for (int i = 0; i < CQS; i++)
			past = past << 4 | seen[i];
		mc_forget(1, past);
		mc_wait_change(&w.fd, sizeof w.fd, 0);
		atomic_fetch_add_explicit(&w.fd, UINT32_MAX, memory_order_seq_cst);
		cq = next_fired(&r, &o, seen);
		if (cq < 0)
			continue;
		give(&o, seen, cq);
		if (owes(&r, &o))
			write_fd();
	}
}

static void final(void)
{
	for (int i = 0; i < CQS; i++)
		if (w.done & 1 << i || mc_dead() == i)
			mc_check(w.got[i], "lost: the owner sleeps on");
}

static const struct mc_thread two[] = {
	{.name = "producer 0", .run = producer, .arg = 0, .proc = 0},
	{.name = "producer 1", .run = producer, .arg = 1, .proc = 1},
	{.name = "nobody", .run = nobody, .arg = 2, .proc = 2},
	{.name = "owner", .run = owner, .proc = OWNER_PROC},
	{.name = "weftd", .run = weftd, .recovery = true},
};

static const struct mc_thread three[] = {
	{.name = "producer 0", .run = producer, .arg = 0, .proc = 0},
	{.name = "producer 1", .run = producer, .arg = 1, .proc = 1},
	{.name = "producer 2", .run = producer, .arg = 2, .proc = 2},
	{.name = "owner", .run = owner, .proc = OWNER_PROC},
	{.name = "weftd", .run = weftd, .recovery = true},
};

#define MODEL(t, start, stops, dies)                                                               \
	{                                                                                          \
		.name = "fired", .state = &w, .size = sizeof(w), .memory = MC_TSO,                 \
		.init = (start), .final = final, .threads = (t), .n_threads = 5,                   \
		.may_stop = (stops), .may_die = (dies), .may_block = true, .max_steps = 150,       \
		.max_states = 12000000                                                             \
	}

const struct model_case fired_cases[] = {
	{"2 CQs, a stop", MODEL(two, init_four, 3, 0)},
	{"2 CQs, a death", MODEL(two, init_four, 0, 1)},
	{"2 CQs, 1 slot, a stop", MODEL(two, init_one, 3, 0)},
	{"2 CQs, 1 slot, a death", MODEL(two, init_one, 0, 1), .slow = true},
	{"3 CQs", MODEL(three, init_four, 0, 0)},
	{"3 CQs, 2 slots", MODEL(three, init_two, 0, 0), .slow = true},
	{"3 CQs, a stop", MODEL(three, init_four, 1, 0), .slow = true},
	{"3 CQs, 2 slots, a stop", MODEL(three, init_two, 1, 0), .slow = true},
	{"3 CQs, a death", MODEL(three, init_four, 0, 1), .slow = true},
	{"no further write", MODEL(two, init_four, 3, 0), NO_FURTHER_WRITE},
	{"the ring alone", MODEL(three, init_two, 0, 0), NO_SCAN},
	{"entry before fired", MODEL(three, init_four, 0, 0), ENTRY_BEFORE_FIRED},
	{"write before fired", MODEL(two, init_four, 0, 0), WRITE_BEFORE_FIRED},
	{"told before the write", MODEL(two, init_four, 3, 0), TOLD_BEFORE_WRITE},
	{0},
};
