// SPDX-License-Identifier: BSD-3-Clause
/*
 * hca/seg/fired.h: producers fire the CQs of a channel, each its own; the owner sleeps on the
 * channel and takes one event for each count.  Every CQ that was fired is given to the program,
 * though a producer is stopped or dies at any step, or the ring overflows; and one that fired
 * before another began to comes before it, unless the ring overflowed.  No count is without an
 * event, but after a death, and where weftd looked because of a doubt: when that is the model does
 * not know, so weftd may look at any time.
 */
#include "hca/seg/fired.h"
#include "models.h"

enum { CQS = 3, OWNER_PROC = 3, SLOTS_MAX = 4 };

enum fired_mutant {
	NO_LOOK = 1, /* a count that went to a stopped producer's event is lost */
	NO_SCAN,     /* the ring alone says who fired */
	ENTRY_BEFORE_FIRED,
	WRITE_BEFORE_FIRED,
	TOLD_BEFORE_WRITE,
	ONE_MORE_AT_ONCE, /* the owner does not wait for the doubt to resolve itself */
	NO_SECOND_LOOK,   /* for an older one that was told meanwhile */
};

static struct {
	struct ticket_ring ring;
	_Atomic uint64_t slots[SLOTS_MAX];
	_Atomic uint32_t overflow, fd;
	_Atomic uint32_t fired[CQS], told[CQS], given[CQS];
	_Atomic uint32_t doubt;
	/* ghosts */
	uint8_t got[CQS];
	uint8_t done;        /* CQs whose producer has fired: bits */
	uint8_t before[CQS]; /* ... when this one began */
	uint8_t full;
	uint8_t added; /* a count by who looked */
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
	struct fired_note n = {.order = ref(), .cq = (uint32_t)cq, .fired = &w.fired[cq]};
	struct fired_ref r = ref();
	uint32_t number;

	if (model_mutant != ENTRY_BEFORE_FIRED) {
		fired_enter(&n);
		return;
	}
	number = atomic_load_explicit(&w.fired[cq], memory_order_relaxed) + 1;
	if (!ticket_push(r.ring, r.slots, r.log_size, 1u << r.log_size, fired_entry(cq, number)))
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

/* ---- weftd ---- */

struct state {
	bool pending, doubtful;
};

static struct state look_at_all(void)
{
	struct state s = {false, false};

	for (int i = 0; i < CQS; i++) {
		uint32_t given = atomic_load_explicit(&w.given[i], memory_order_relaxed);
		uint32_t told = atomic_load_explicit(&w.told[i], memory_order_acquire);

		s.pending |= atomic_load_explicit(&w.fired[i], memory_order_relaxed) != given;
		s.doubtful |= fired_ahead(given, told) != 0;
		mc_forget(10 + i, s.pending << 1 | s.doubtful);
	}
	return s;
}

/* hca/exec/recover.c's channel_timer(), as often as it is asked to. */
static void look(int arg)
{
	(void)arg;
	for (;;) {
		struct state s;
		uint32_t counts;

		mc_forget(2, 0);
		mc_wait_change(&w.doubt, sizeof w.doubt, 0);
		if (model_mutant == NO_LOOK)
			return;
		atomic_store_explicit(&w.doubt, 0, memory_order_seq_cst);
		atomic_thread_fence(memory_order_seq_cst);
		s = look_at_all();
		counts = atomic_load_explicit(&w.fd, memory_order_acquire);
		if (s.pending && !counts) {
			w.added = 1;
			write_fd();
		}
		if (!s.pending || !s.doubtful)
			continue;
		atomic_store_explicit(&w.doubt, 1, memory_order_seq_cst);
		/* Before the owner has taken that one the next look would find the same. */
		mc_forget(3, counts);
		if (counts)
			mc_wait_change(&w.fd, sizeof w.fd, counts);
	}
}

/* After a death weftd fires each CQ that it may concern. */
static void bury(int arg)
{
	fire(mc_dead());
	look(arg);
}

/* ---- the owner, as hca/queue/channel.c has it ---- */

struct choice {
	int cq; /* -1: none */
	bool told, others;
};

static bool due(int cq, const uint32_t *seen)
{
	return atomic_load_explicit(&w.fired[cq], memory_order_acquire) != seen[cq];
}

static bool consider(struct choice *c, int cq, const uint32_t *seen)
{
	if (fired_ahead(atomic_load_explicit(&w.told[cq], memory_order_acquire), seen[cq])) {
		*c = (struct choice){.cq = cq, .told = true};
		return false;
	}
	if (c->cq < 0)
		c->cq = cq;
	else if (c->cq != cq)
		c->others = true;
	return true;
}

static struct choice any_fired(struct fired_reader *o, const uint32_t *seen)
{
	struct choice c = {.cq = -1};

	for (int i = 0; i < CQS && model_mutant != NO_SCAN; i++)
		if (due(i, seen) && !consider(&c, i, seen))
			break;
	o->sweeps &= c.cq >= 0;
	return c;
}

static bool names(uint64_t e, const uint32_t *seen)
{
	return due((int)fired_cq(e), seen) && fired_is_due(e, seen[fired_cq(e)]);
}

static struct choice oldest(const struct fired_ref *r, struct fired_reader *o, const uint32_t *seen,
	uint32_t n, uint32_t *at)
{
	struct choice c = {.cq = -1};
	uint64_t e;

	for (*at = 0; *at < n && (e = fired_peek(r, o, *at)); ++*at)
		if (names(e, seen) && !consider(&c, (int)fired_cq(e), seen))
			break;
	return c;
}

static struct choice next_fired(
	const struct fired_ref *r, struct fired_reader *o, const uint32_t *seen)
{
	struct choice c;
	uint32_t at;
	uint64_t e;

	fired_begin(r, o);
	while ((e = fired_peek(r, o, 0)) && !names(e, seen))
		fired_drop(r, o);
	if (!e)
		return any_fired(o, seen);
	c = oldest(r, o, seen, SLOTS_MAX, &at);
	if (c.told && at && model_mutant != NO_SECOND_LOOK)
		c = oldest(r, o, seen, at + 1, &at);
	return c;
}

static void give(uint32_t *seen, int cq)
{
	if (!w.got[cq]++ && !w.full)
		for (int i = 0; i < CQS; i++)
			mc_check(!(w.before[cq] & 1 << i) || w.got[i], "out of order");
	atomic_store_explicit(&w.given[cq], ++seen[cq], memory_order_release);
}

static void doubt(void)
{
	if (model_mutant == ONE_MORE_AT_ONCE) {
		write_fd();
		return;
	}
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&w.doubt, memory_order_seq_cst))
		atomic_store_explicit(&w.doubt, 1, memory_order_seq_cst);
}

static void owner(int arg)
{
	struct fired_reader o = {.head = 0};
	const struct fired_ref r = ref();
	uint32_t seen[CQS] = {0};

	(void)arg;
	for (;;) {
		uint64_t past = o.head << 1 | o.sweeps;
		struct choice c;

		for (int i = 0; i < CQS; i++)
			past = past << 4 | seen[i];
		mc_forget(1, past);
		mc_wait_change(&w.fd, sizeof w.fd, 0);
		atomic_fetch_add_explicit(&w.fd, UINT32_MAX, memory_order_seq_cst);
		c = next_fired(&r, &o, seen);
		mc_check(c.cq >= 0 || w.added || mc_dead() >= 0, "readable without an event");
		if (c.cq < 0)
			continue;
		give(seen, c.cq);
		if (c.others && !c.told)
			doubt();
	}
}

static void final(void)
{
	for (int i = 0; i < CQS; i++)
		if (w.done & 1 << i || mc_dead() == i)
			mc_check(w.got[i], "lost: the owner sleeps on");
}

#define THREADS(third, looks, buries)                                                              \
	{                                                                                          \
		{.name = "producer 0", .run = producer, .arg = 0, .proc = 0},                      \
			{.name = "producer 1", .run = producer, .arg = 1, .proc = 1},              \
			{.name = "producer 2", .run = (third), .arg = 2, .proc = 2},               \
			{.name = "owner", .run = owner, .proc = OWNER_PROC},                       \
			{.name = "weftd looks", .run = (looks), .proc = 4},                        \
			{.name = "weftd buries", .run = (buries), .recovery = true, .proc = 4},    \
	}

static const struct mc_thread two[] = THREADS(nobody, nobody, nobody);
static const struct mc_thread two_looked_at[] = THREADS(nobody, look, nobody);
static const struct mc_thread two_mortal[] = THREADS(nobody, nobody, bury);
static const struct mc_thread three[] = THREADS(producer, nobody, nobody);
static const struct mc_thread three_looked_at[] = THREADS(producer, look, nobody);
static const struct mc_thread three_mortal[] = THREADS(producer, nobody, bury);

#define MODEL(t, start, stops, dies)                                                               \
	{                                                                                          \
		.name = "fired", .state = &w, .size = sizeof(w), .memory = MC_TSO,                 \
		.init = (start), .final = final, .threads = (t), .n_threads = 6,                   \
		.may_stop = (stops), .may_die = (dies), .may_block = true, .max_steps = 150,       \
		.max_states = 12000000                                                             \
	}

const struct model_case fired_cases[] = {
	{"2 CQs, a stop", MODEL(two_looked_at, init_four, 3, 0)},
	{"2 CQs, a death", MODEL(two_mortal, init_four, 0, 1)},
	{"2 CQs, 1 slot, a stop", MODEL(two_looked_at, init_one, 3, 0)},
	{"2 CQs, 1 slot, a death", MODEL(two_mortal, init_one, 0, 1), .slow = true},
	{"3 CQs", MODEL(three, init_four, 0, 0)},
	{"3 CQs, 2 slots", MODEL(three, init_two, 0, 0), .slow = true},
	{"3 CQs, a stop", MODEL(three_looked_at, init_four, 1, 0), .slow = true},
	{"3 CQs, 2 slots, a stop", MODEL(three_looked_at, init_two, 1, 0), .slow = true},
	{"3 CQs, a death", MODEL(three_mortal, init_four, 0, 1), .slow = true},
	{"no look", MODEL(two_looked_at, init_four, 3, 0), NO_LOOK},
	{"the ring alone", MODEL(three, init_two, 0, 0), NO_SCAN},
	{"entry before fired", MODEL(three, init_four, 0, 0), ENTRY_BEFORE_FIRED},
	{"write before fired", MODEL(two, init_four, 0, 0), WRITE_BEFORE_FIRED},
	{"told before the write", MODEL(two_looked_at, init_four, 3, 0), TOLD_BEFORE_WRITE},
	{"one more at once", MODEL(two, init_four, 0, 0), ONE_MORE_AT_ONCE},
	{"no second look", MODEL(three, init_four, 0, 0), NO_SECOND_LOOK},
	{0},
};
