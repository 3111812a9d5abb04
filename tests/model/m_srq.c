// SPDX-License-Identifier: BSD-3-Clause
/*
 * hca/seg/rxq.h: two processes take receives from a shared queue and complete them, its owner
 * posts, frees and posts anew, one of the takers is stopped or dies.  No receive is given to two,
 * none is lost, a taker that parked hears of the next receive, and a stopped one delays nobody.
 */
#include "hca/seg/rxq.h"

#include "hca/seg/park.h"
#include "models.h"

enum { TAKERS = 2, SLOTS_MAX = 4, OWNER_PROC = TAKERS, WEFTD_PROC };

enum srq_mutant {
	TAKEN_BY_STORE = 1, /* looks whether it is posted, then stores */
	HEAD_FIRST,         /* moves the head, then marks the slot */
	NO_REWIND,          /* what a dead one had goes back behind the head */
	REWIND_WITHOUT_GEN, /* ... and an older move of the head passes it again */
	POSTED_OVER,        /* the owner does not skip what is not free */
	PARK_UNCHECKED,     /* does not look again after parking */
	DEATH_IGNORED,
};

/* Argument of the takers: number | receives << 4; of the owner: receives. */
#define TAKES(n) ((n) << 4)

static struct {
	_Atomic uint64_t head;
	_Atomic uint32_t tail, tail_seen, park, tickets;
	_Atomic uint64_t slot[SLOTS_MAX];
	_Atomic uint32_t asleep[TAKERS]; /* a QP's own flag, beside that of the queue */
	/* ghosts */
	uint8_t holder[SLOTS_MAX]; /* who fills it + 1 */
	uint8_t posted, freed;
	uint8_t recovered;
} w;

static uint32_t slots;

static struct rxq_ring ring(void)
{
	return (struct rxq_ring){.head = &w.head,
		.tail = &w.tail,
		.tail_seen = &w.tail_seen,
		.slots = (uint8_t *)w.slot,
		.stride = sizeof(w.slot[0]),
		.mask = slots - 1};
}

static void init_one(void)
{
	slots = 1;
}

static void init_two(void)
{
	slots = 2;
}

/* The position wraps. */
static void init_wrap(void)
{
	slots = 2;
	w.tail = UINT32_MAX;
	w.tail_seen = UINT32_MAX;
	w.head = UINT32_MAX;
}

/* rxq_take() with one defect. */
static bool take_broken(const struct rxq_ring *r, uint32_t attach, uint32_t *pos)
{
	uint64_t h = atomic_load_explicit(r->head, memory_order_seq_cst);
	uint32_t p = h;
	_Atomic uint64_t *s = rxq_slot(r, p);

	if (p == atomic_load_explicit(r->tail, memory_order_seq_cst))
		return false;
	if (model_mutant == HEAD_FIRST &&
		!atomic_compare_exchange_strong_explicit(
			r->head, &h, h + 1, memory_order_seq_cst, memory_order_relaxed))
		return take_broken(r, attach, pos);
	if (atomic_load_explicit(s, memory_order_seq_cst) != rxq_word(RXQ_POSTED, 0, p)) {
		atomic_compare_exchange_strong_explicit(
			r->head, &h, h + 1, memory_order_seq_cst, memory_order_relaxed);
		return take_broken(r, attach, pos);
	}
	atomic_store_explicit(s, rxq_word(RXQ_TAKEN, attach, p), memory_order_seq_cst);
	if (model_mutant != HEAD_FIRST)
		atomic_compare_exchange_strong_explicit(
			r->head, &h, h + 1, memory_order_seq_cst, memory_order_relaxed);
	*pos = p;
	return true;
}

static bool take(uint32_t attach, uint32_t *pos)
{
	const struct rxq_ring r = ring();

	if (model_mutant == TAKEN_BY_STORE || model_mutant == HEAD_FIRST)
		return take_broken(&r, attach, pos);
	return rxq_take(&r, attach, pos);
}

static void fill(int me, uint32_t pos)
{
	uint8_t *holder = &w.holder[pos & (slots - 1)];

	mc_check(!*holder || *holder == mc_dead() + 1, "a receive is filled by two");
	*holder = me + 1;
	mc_step("fill");
	mc_check(*holder == me + 1, "a receive is filled by two");
	*holder = 0;
}

/* Nothing there: sleeps until the owner has posted. */
static void wait_for_receive(int me)
{
	const struct rxq_ring r = ring();

	park_set(&w.asleep[me]);
	park_set(&w.park);
	if (model_mutant != PARK_UNCHECKED && rxq_has_more(&r))
		return;
	mc_wait_change(&w.asleep[me], sizeof(w.asleep[me]), 1);
}

/* The owner posted, or weftd gave back: whoever sleeps is served. */
static void wake_all(void)
{
	for (int i = 0; i < TAKERS; i++)
		atomic_exchange_explicit(&w.asleep[i], 0, memory_order_seq_cst);
}

static void taker(int arg)
{
	const struct rxq_ring r = ring();
	int me = arg & 0xf, n = arg >> 4;

	for (int i = 0; i < n; i++) {
		uint32_t pos;

		mc_forget(1, i);
		while (!take(me + 1, &pos)) {
			wait_for_receive(me);
			mc_forget(1, i);
		}
		fill(me, pos);
		mc_check(rxq_done(&r, pos, me + 1), "a receive was taken back from a living one");
		atomic_fetch_add_explicit(&w.tickets, 1, memory_order_seq_cst);
		rxq_announced(&r, pos, me + 1);
	}
}

static bool find_free(const struct rxq_ring *r, uint32_t tail, uint32_t *pos)
{
	if (model_mutant != POSTED_OVER)
		return rxq_find_free(r, tail, pos);
	*pos = tail;
	return true;
}

/* Frees what is done; true if there was anything. */
static bool poll(const struct rxq_ring *r)
{
	bool any = false;

	for (uint32_t i = 0; i < slots; i++) {
		uint64_t s = atomic_load_explicit(rxq_slot(r, i), memory_order_acquire);

		if (rxq_state_of(s) != RXQ_DONE)
			continue;
		rxq_free(r, i);
		w.freed++;
		any = true;
	}
	return any;
}

static void owner(int n)
{
	const struct rxq_ring r = ring();
	uint32_t tail = w.tail;

	for (int i = 0; i < n; i++) {
		uint32_t pos;

		mc_forget(2, (uint64_t)tail << 8 | i);
		while (!find_free(&r, tail, &pos)) {
			uint32_t seen = atomic_load_explicit(&w.tickets, memory_order_seq_cst);

			if (!poll(&r))
				mc_wait_change(&w.tickets, sizeof(w.tickets), seen);
			mc_forget(2, (uint64_t)tail << 8 | i);
		}
		rxq_post(&r, pos);
		w.posted++;
		tail = pos + 1;
		if (park_publish(&w.tail, tail, &w.park))
			wake_all();
	}
}

/* rxq_untake() with one defect. */
static void untake_broken(const struct rxq_ring *r, uint32_t i, uint64_t s)
{
	uint32_t tail = atomic_load_explicit(r->tail, memory_order_seq_cst);
	uint32_t pos = tail - 1 - ((tail - 1 - i) & r->mask);
	uint64_t h = atomic_load_explicit(r->head, memory_order_seq_cst);

	atomic_compare_exchange_strong_explicit(rxq_slot(r, i), &s, rxq_word(RXQ_POSTED, 0, pos),
		memory_order_seq_cst, memory_order_seq_cst);
	while (model_mutant == REWIND_WITHOUT_GEN && (int32_t)((uint32_t)h - pos) > 0 &&
		!atomic_compare_exchange_strong_explicit(
			r->head, &h, pos, memory_order_seq_cst, memory_order_seq_cst))
		;
}

/* weftd, as exec_rxq_recover(). */
static void survivor(int arg)
{
	const struct rxq_ring r = ring();
	uint32_t dead = mc_dead() + 1;

	(void)arg;
	if (mc_dead() >= TAKERS || model_mutant == DEATH_IGNORED)
		return;
	for (uint32_t i = 0; i < slots; i++) {
		uint64_t s = atomic_load_explicit(rxq_slot(&r, i), memory_order_seq_cst);

		if (rxq_attach_of(s) == dead && rxq_state_of(s) == RXQ_TAKEN) {
			if (model_mutant)
				untake_broken(&r, i, s);
			else
				rxq_untake(&r, i, dead);
		}
		if (rxq_attach_of(s) == dead && rxq_state_of(s) == RXQ_DONE) {
			atomic_fetch_add_explicit(&w.tickets, 1, memory_order_seq_cst);
			rxq_announced(&r, s, dead);
		}
		if (!model_mutant)
			rxq_refind(&r, i);
		mc_forget(3, i);
	}
	wake_all();
	w.recovered = 1;
}

static void final(void)
{
	uint32_t there = 0, taken = 0, head = w.head;

	for (int i = 0; i < TAKERS; i++)
		mc_check(mc_stopped() == i || mc_dead() == i || mc_finished(i),
			"a taker is delayed by another");
	for (uint32_t i = 0; i < slots; i++) {
		enum rxq_state s = rxq_state_of(w.slot[i]);

		taken += s == RXQ_TAKEN;
		there += s != RXQ_FREE;
		mc_check(s != RXQ_POSTED || (int32_t)((uint32_t)w.slot[i] - head) >= 0,
			"a receive lies behind the head");
	}
	mc_check(w.posted == w.freed + there, "a receive is lost, or came twice");
	mc_check(!taken || mc_stopped() >= 0 || (mc_dead() >= 0 && !w.recovered),
		"a receive stays taken");
}

static const struct mc_thread one_each[] = {
	{.name = "taker 0", .run = taker, .arg = 0 | TAKES(1), .proc = 0},
	{.name = "taker 1", .run = taker, .arg = 1 | TAKES(1), .proc = 1},
	{.name = "owner", .run = owner, .arg = 2, .proc = OWNER_PROC},
	{.name = "weftd", .run = survivor, .proc = WEFTD_PROC, .recovery = true},
};
static const struct mc_thread two_each[] = {
	{.name = "taker 0", .run = taker, .arg = 0 | TAKES(2), .proc = 0},
	{.name = "taker 1", .run = taker, .arg = 1 | TAKES(1), .proc = 1},
	{.name = "owner", .run = owner, .arg = 3, .proc = OWNER_PROC},
	{.name = "weftd", .run = survivor, .proc = WEFTD_PROC, .recovery = true},
};

#define MODEL(t, start, stop, die)                                                                 \
	{                                                                                          \
		.name = "srq", .state = &w, .size = sizeof(w), .memory = MC_TSO, .init = (start),  \
		.final = final, .threads = (t), .n_threads = sizeof(t) / sizeof((t)[0]),           \
		.may_stop = (stop), .may_die = (die), .may_block = true, .max_steps = 160,         \
		.max_states = 12000000,                                                            \
	}

const struct model_case srq_cases[] = {
	{"2 takers, 2 slots", MODEL(one_each, init_two, 0, 0)},
	{"2 takers, 2 slots, 2 laps", MODEL(two_each, init_two, 0, 0), .slow = true},
	{"2 takers, 1 slot", MODEL(two_each, init_one, 0, 0)},
	{"a taker stops", MODEL(one_each, init_two, 3, 0)},
	{"a taker dies", MODEL(one_each, init_two, 0, 3)},
	{"a taker dies, 1 slot", MODEL(one_each, init_one, 0, 3)},
	{"2 laps, a taker dies", MODEL(two_each, init_two, 0, 3), .slow = true},
	{"the position wraps", MODEL(one_each, init_wrap, 0, 3)},
	{"taken by a store", MODEL(one_each, init_two, 0, 0), TAKEN_BY_STORE},
	{"head moved first", MODEL(one_each, init_two, 0, 3), HEAD_FIRST},
	{"head not moved back", MODEL(one_each, init_two, 0, 3), NO_REWIND},
	{"head without a generation", MODEL(one_each, init_two, 0, 3), REWIND_WITHOUT_GEN},
	{"posted over what is not free", MODEL(two_each, init_two, 0, 0), POSTED_OVER},
	{"parked without a second look", MODEL(one_each, init_two, 0, 0), PARK_UNCHECKED},
	{"death ignored", MODEL(one_each, init_one, 0, 3), DEATH_IGNORED},
	{0},
};
