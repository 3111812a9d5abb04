// SPDX-License-Identifier: BSD-3-Clause
/*
 * hca/seg/ticket.h: producers push, one consumer takes, over several laps of a small ring.  No
 * ticket is lost or doubled, each producer's come in order, "full" is reported only if the ring
 * was full at some instant of the call, and a stopped or dead producer delays nobody.
 */
#include "hca/seg/ticket.h"

#include "models.h"

enum { PRODUCERS = 3, SLOTS_MAX = 4, LAPS_BEFORE = TICKET_LAP_MASK };

enum ticket_mutant {
	NO_HELP = 1,     /* waits until the other has moved the tail */
	TAIL_ADDED,      /* moves the tail by fetch_add */
	LAP_UNCHECKED,   /* overwrites whatever the slot holds */
	HEAD_READ_FIRST, /* before the tail: full is reported wrongly */
	NO_FULL_CHECK,
	ADVANCE_BEFORE_PEEK,  /* the consumer gives the slot back and then reads it */
	HEAD_SEEN_TOO_NEW,    /* left over from an earlier use of the CQ */
	RESERVE_THEN_PUBLISH, /* the usual ring: tail first, slot after */
	TICKET_WITHOUT_MARK,  /* may be 0 on lap 0, which means that none is there */
};

/* Argument of producers: number | pushes << 4; of the consumer: 0. */
#define PUSHES(n) ((n) << 4)

static struct {
	struct ticket_ring ring;
	_Atomic uint64_t slots[SLOTS_MAX];
	/* ghosts */
	uint8_t in_call[PRODUCERS], was_full[PRODUCERS];
	uint8_t pushed[PRODUCERS], got[PRODUCERS];
} w;

/* Parameters of the variant that runs. */
static uint32_t log_size, limit;
static uint64_t start;

static void init_at(uint32_t log, uint32_t lim, uint64_t laps)
{
	log_size = log;
	limit = lim;
	start = laps << log;
	w.ring.tail = w.ring.head = start;
	w.ring.head_seen = model_mutant == HEAD_SEEN_TOO_NEW ? start + 100 : start;
	for (int i = 0; i < 1 << log && laps; i++)
		w.slots[i] = ticket_make(1, false, 1) | ticket_lap(start - 1, log)
								<< TICKET_LAP_SHIFT;
}

static void init_two(void)
{
	init_at(1, 2, 0);
}

static void init_four(void)
{
	init_at(2, 3, 0);
}

/* The lap number wraps. */
static void init_wrap(void)
{
	init_at(1, 2, LAPS_BEFORE);
}

static uint64_t slot_lap(uint64_t pos)
{
	return w.slots[pos & ((1u << log_size) - 1)] >> TICKET_LAP_SHIFT;
}

/* After each step: during which calls has the ring been full? */
static void every(void)
{
	uint64_t end = w.ring.tail;

	if (slot_lap(end) == ticket_lap(end, log_size))
		end++;
	mc_check((int64_t)(end - w.ring.head) <= (int64_t)limit, "more tickets than the limit");
	for (int i = 0; i < PRODUCERS; i++)
		if (w.in_call[i] && end - w.ring.head >= limit)
			w.was_full[i] = 1;
}

static bool push_reserving(uint64_t ticket)
{
	uint64_t t = atomic_load_explicit(&w.ring.tail, memory_order_acquire);

	do {
		if (t - atomic_load_explicit(&w.ring.head, memory_order_acquire) >= limit)
			return false;
	} while (!atomic_compare_exchange_strong_explicit(
		&w.ring.tail, &t, t + 1, memory_order_seq_cst, memory_order_relaxed));
	atomic_store_explicit(&w.slots[t & ((1 << log_size) - 1)],
		ticket | ticket_lap(t, log_size) << TICKET_LAP_SHIFT, memory_order_release);
	return true;
}

/* ticket_push() with one defect. */
static bool push_broken(uint64_t ticket)
{
	uint64_t mask = (1ull << log_size) - 1;

	for (;;) {
		uint64_t h0 = model_mutant == HEAD_READ_FIRST
				      ? atomic_load_explicit(&w.ring.head, memory_order_acquire)
				      : 0;
		uint64_t t = atomic_load_explicit(&w.ring.tail, memory_order_acquire);
		uint64_t head = model_mutant == HEAD_READ_FIRST
					? h0
					: atomic_load_explicit(&w.ring.head, memory_order_acquire);
		uint64_t s = atomic_load_explicit(&w.slots[t & mask], memory_order_acquire);
		uint64_t lap = ticket_lap(t, log_size);

		if (s >> TICKET_LAP_SHIFT == lap && model_mutant != LAP_UNCHECKED) {
			if (model_mutant == NO_HELP)
				mc_wait_change(&w.ring.tail, sizeof(w.ring.tail), t);
			else if (model_mutant == TAIL_ADDED)
				atomic_fetch_add_explicit(&w.ring.tail, 1, memory_order_seq_cst);
			else
				atomic_compare_exchange_strong_explicit(&w.ring.tail, &t, t + 1,
					memory_order_seq_cst, memory_order_relaxed);
			continue;
		}
		if ((int64_t)(t - head) >= (int64_t)limit && model_mutant != NO_FULL_CHECK)
			return false;
		if (s >> TICKET_LAP_SHIFT != ((lap - 1) & 0xffffff) &&
			model_mutant != LAP_UNCHECKED)
			continue;
		if (!atomic_compare_exchange_strong_explicit(&w.slots[t & mask], &s,
			    ticket | lap << TICKET_LAP_SHIFT, memory_order_seq_cst,
			    memory_order_relaxed))
			continue;
		atomic_compare_exchange_strong_explicit(
			&w.ring.tail, &t, t + 1, memory_order_seq_cst, memory_order_relaxed);
		return true;
	}
}

static bool push(int me, uint64_t ticket)
{
	bool ok;

	w.was_full[me] = 0;
	w.in_call[me] = 1;
	every();
	if (model_mutant == RESERVE_THEN_PUBLISH)
		ok = push_reserving(ticket);
	else if (model_mutant == TICKET_WITHOUT_MARK)
		ok = ticket_push(&w.ring, w.slots, log_size, limit, ticket & ~TICKET_PRESENT);
	else if (model_mutant && model_mutant != ADVANCE_BEFORE_PEEK &&
		 model_mutant != HEAD_SEEN_TOO_NEW)
		ok = push_broken(ticket);
	else
		ok = ticket_push(&w.ring, w.slots, log_size, limit, ticket);
	w.in_call[me] = 0;
	mc_check(ok || w.was_full[me], "full is reported, but the ring never was");
	w.was_full[me] = 0;
	w.pushed[me] += ok;
	return ok;
}

static void producer(int arg)
{
	int me = arg & 0xf, n = arg >> 4;

	for (int i = 0; i < n; i++) {
		mc_loop_at(NULL, 0);
		mc_forget(1, i);
		/* the generation field carries the number of the ticket */
		for (;;) {
			uint64_t head = atomic_load_explicit(&w.ring.head, memory_order_acquire);

			/* where each round of ticket_push() starts */
			mc_loop_at(model_mutant == HEAD_READ_FIRST ? &w.ring.head : &w.ring.tail,
				head * 16 + i);
			if (push(me, ticket_make(me, false, i)))
				break;
			mc_loop_at(NULL, 0);
			mc_wait_change(&w.ring.head, sizeof(w.ring.head), head);
			mc_forget(1, i);
		}
	}
}

static void take(uint64_t ticket)
{
	uint32_t who = ticket_qp(ticket);

	mc_check(who < PRODUCERS, "a ticket that nobody pushed");
	if (who >= PRODUCERS)
		return;
	mc_check(ticket_gen(ticket) >= w.got[who], "a ticket came twice");
	mc_check(ticket_gen(ticket) <= w.got[who], "a ticket is lost or out of order");
	w.got[who]++;
}

static void consumer(int arg)
{
	(void)arg;
	for (uint64_t pos = start;; pos++) {
		_Atomic uint64_t *slot = &w.slots[pos & ((1 << log_size) - 1)];
		uint64_t t;

		mc_forget(2, pos);
		if (model_mutant == ADVANCE_BEFORE_PEEK)
			ticket_advance(&w.ring, pos + 1);
		while (!(t = ticket_peek(w.slots, log_size, pos))) {
			uint64_t s = atomic_load_explicit(slot, memory_order_acquire);

			if (s >> TICKET_LAP_SHIFT != ticket_lap(pos, log_size))
				mc_wait_change(slot, sizeof(*slot), s);
			mc_forget(3, pos);
		}
		take(t);
		if (model_mutant != ADVANCE_BEFORE_PEEK)
			ticket_advance(&w.ring, pos + 1);
	}
}

static void final(void)
{
	const struct mc_model *m = mc_current_model();

	for (int i = 0; i < m->n_threads - 1; i++) {
		int gone = mc_stopped() == i || mc_dead() == i;

		mc_check(gone || mc_finished(i), "a producer is delayed by another");
		mc_check(w.got[i] >= w.pushed[i], "a ticket is never seen");
		mc_check(w.got[i] <= w.pushed[i] + gone, "a ticket too much");
	}
}

/* The consumer is the last thread; producers are processes 0.. */
static const struct mc_thread three[] = {
	{.name = "producer 0", .run = producer, .arg = 0 | PUSHES(1), .proc = 0},
	{.name = "producer 1", .run = producer, .arg = 1 | PUSHES(2), .proc = 1},
	{.name = "producer 2", .run = producer, .arg = 2 | PUSHES(1), .proc = 2},
	{.name = "consumer", .run = consumer, .proc = 3},
};
static const struct mc_thread two[] = {
	{.name = "producer 0", .run = producer, .arg = 0 | PUSHES(3), .proc = 0},
	{.name = "producer 1", .run = producer, .arg = 1 | PUSHES(2), .proc = 1},
	{.name = "consumer", .run = consumer, .proc = 3},
};
static const struct mc_thread two_short[] = {
	{.name = "producer 0", .run = producer, .arg = 0 | PUSHES(2), .proc = 0},
	{.name = "producer 1", .run = producer, .arg = 1 | PUSHES(2), .proc = 1},
	{.name = "consumer", .run = consumer, .proc = 3},
};
static const struct mc_thread three_long[] = {
	{.name = "producer 0", .run = producer, .arg = 0 | PUSHES(2), .proc = 0},
	{.name = "producer 1", .run = producer, .arg = 1 | PUSHES(2), .proc = 1},
	{.name = "producer 2", .run = producer, .arg = 2 | PUSHES(2), .proc = 2},
	{.name = "consumer", .run = consumer, .proc = 3},
};

#define MODEL(t, start, events)                                                                    \
	{                                                                                          \
		.name = "ticket", .state = &w, .size = sizeof(w), .memory = MC_TSO,                \
		.init = (start), .every = every, .final = final, .threads = (t),                   \
		.n_threads = sizeof(t) / sizeof((t)[0]), .may_stop = (events),                     \
		.may_die = (events), .may_block = true, .max_steps = 120, .max_states = 12000000,  \
	}

const struct model_case ticket_cases[] = {
	{"3 producers, 2 slots", MODEL(three, init_two, 0)},
	{"3 producers, 4 slots, limit 3", MODEL(three, init_four, 0)},
	{"2 producers, 2 laps, stop or death", MODEL(two_short, init_two, 7)},
	{"2 producers, 3 laps", MODEL(two, init_two, 0)},
	{"2 producers, 3 laps, stop or death", MODEL(two, init_two, 7), .slow = true},
	{"2 producers, the lap wraps", MODEL(two_short, init_wrap, 0)},
	{"3 producers, stop or death", MODEL(three_long, init_two, 7), .slow = true},
	{"waits instead of helping", MODEL(two, init_two, 7), NO_HELP},
	{"tail moved by addition", MODEL(two, init_two, 0), TAIL_ADDED},
	{"lap not checked", MODEL(two, init_two, 0), LAP_UNCHECKED},
	{"head read before the tail", MODEL(two, init_two, 0), HEAD_READ_FIRST},
	{"fullness not checked", MODEL(two, init_two, 0), NO_FULL_CHECK},
	{"slot given back before it is read", MODEL(two, init_two, 0), ADVANCE_BEFORE_PEEK},
	{"head seen in an earlier life", MODEL(two, init_two, 0), HEAD_SEEN_TOO_NEW},
	{"reserve, then publish", MODEL(two, init_two, 7), RESERVE_THEN_PUBLISH},
	{"ticket without its mark", MODEL(two, init_wrap, 0), TICKET_WITHOUT_MARK},
	{0},
};
