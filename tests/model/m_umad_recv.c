// SPDX-License-Identifier: BSD-3-Clause
/*
 * mad/ring.h and mad/bell.h, a receive ring: weftd pushes MADs, two processes read them and sleep
 * on the socket in between; one may be stopped or die.  Each MAD is read once and whole, nobody
 * sleeps while one is there, and in the end no byte is left in the socket, even after a death.
 */
#define RING_MODEL_WORDS 1

#include "mad/bell.h"
#include "mad/ring.h"
#include "models.h"

enum { WEFTD, READERS = 2, SLOTS_MAX = 2, MADS_MAX = 3, TOO_SMALL = 8 };

enum recv_mutant {
	SWAP_BEFORE_COPY = 1,
	UNFIT_WITHOUT_LOOK, /* nobody looks whether what does not fit is still the first */
	HEAD_WITHOUT_SWAP,  /* who takes a record stores the head */
	TAIL_BEFORE_RECORD,
	BELL_BEFORE_PUSH,
	RING_WITHOUT_FENCE,
	OVERRIDE_WITHOUT_BYTE, /* who finds a claim leaves it to the claimer to see the push */
	NOT_RINGING,           /* a byte on its way can be claimed */
	QUIET_WITHOUT_LOOK,
	TWO_BYTES,      /* who was overridden leaves its byte */
	NO_CLAIM,       /* the byte is taken without one */
	BYTE_AFTER_END, /* the bell is silent before the byte is taken */
	NOBODY_BURIES,
	GHOST_BEFORE_SETTLED,
	HOLD_WITHOUT_LOOK,
	HELD_NOT_TOLD, /* at half of the ring, but not when it is empty */
};

static struct {
	struct ring_ends ends;
	struct ring_slot slots[SLOTS_MAX];
	_Atomic uint64_t bell;
	_Atomic uint32_t settled[1 + READERS];
	_Atomic uint32_t held;
	_Atomic uint32_t bytes; /* in the readers' end of the socket */
	_Atomic uint32_t told;  /* a byte in weftd's */
	_Atomic uint32_t died;  /* weftd knows of it */
	_Atomic uint32_t turns; /* of weftd that ended: see nap() */
	/* ghosts */
	uint8_t pushed;
	uint8_t got[MADS_MAX];
} w;

static uint32_t log_size;

static void one_slot(void)
{
	log_size = 0;
}

static void two_slots(void)
{
	log_size = 1;
}

static struct ring_ref ref(void)
{
	return (struct ring_ref){.ends = &w.ends, .slots = w.slots, .log_size = log_size};
}

/* ---- weftd ---- */

struct maker {
	struct bell_producer bell;
	uint64_t tail;
	uint32_t mads;
	uint32_t overridden[1 + READERS];
	bool ghost;
};

static void send_byte(void *arg)
{
	(void)arg;
	atomic_fetch_add_explicit(&w.bytes, 1, memory_order_seq_cst);
}

static void overrode(struct maker *m, uint32_t who)
{
	if (who)
		m->overridden[who]++;
}

/* bell_ring(), but it leaves a claim to the claimer, or claims a byte that is on its way. */
static void badly_ring(struct maker *m)
{
	uint64_t old;

	atomic_thread_fence(memory_order_seq_cst);
	if (bell_state(atomic_load_explicit(&w.bell, memory_order_relaxed)) == BELL_RUNG)
		return;
	m->bell.number += BELL_NUMBER_ONE;
	old = atomic_exchange_explicit(&w.bell, m->bell.number | BELL_RUNG, memory_order_seq_cst);
	overrode(m, bell_claimer(old));
	if (bell_state(old) == BELL_SILENT || model_mutant == NOT_RINGING)
		send_byte(NULL);
}

static void ring_bell(struct maker *m)
{
	if (model_mutant == RING_WITHOUT_FENCE &&
		bell_state(atomic_load_explicit(&w.bell, memory_order_relaxed)) == BELL_RUNG)
		return;
	if (model_mutant == OVERRIDE_WITHOUT_BYTE || model_mutant == NOT_RINGING)
		badly_ring(m);
	else
		overrode(m, bell_ring(&m->bell));
}

static enum ring_result push(struct maker *m)
{
	const struct ring_ref r = ref();
	const struct umad_record rec = {.word = {m->mads + 1}};
	struct ring_slot *s;

	if (model_mutant != TAIL_BEFORE_RECORD)
		return ring_push(&r, &m->tail, &rec);
	if (m->tail - atomic_load_explicit(&w.ends.head, memory_order_acquire) >= ring_size(&r))
		return RING_FULL;
	s = ring_slot(&r, m->tail);
	atomic_store_explicit(&w.ends.tail, ++m->tail, memory_order_relaxed);
	ring_store(s, &rec);
	return RING_OK;
}

/* The ring is full: waits until a reader tells that there is room. */
static void hold(const struct ring_ref *r, struct maker *m)
{
	bool room = ring_hold(r, &w.held, m->tail);

	if (room && model_mutant != HOLD_WITHOUT_LOOK)
		return;
	mc_wait_change(&w.told, sizeof w.told, 0);
	atomic_exchange_explicit(&w.told, 0, memory_order_seq_cst);
}

static bool bytes(void *arg)
{
	(void)arg;
	return atomic_load_explicit(&w.bytes, memory_order_seq_cst);
}

/* The reader that lives and was overridden has taken its byte away. */
static bool settled(const struct maker *m, uint32_t who)
{
	return model_mutant == GHOST_BEFORE_SETTLED ||
	       atomic_load_explicit(&w.settled[who], memory_order_acquire) == m->overridden[who];
}

static void end_turn(void)
{
	atomic_fetch_add_explicit(&w.turns, 1, memory_order_seq_cst);
}

static void bury(struct maker *m, uint32_t who)
{
	if (model_mutant == NOBODY_BURIES)
		return;
	overrode(m, bell_bury(&m->bell, who));
	end_turn();
	m->ghost =
		model_mutant == GHOST_BEFORE_SETTLED ||
		atomic_load_explicit(&w.settled[who], memory_order_acquire) != m->overridden[who];
}

static void exorcise(struct maker *m, uint32_t living)
{
	if (!m->ghost || !settled(m, living) || !bell_exorcise(&m->bell, bytes))
		return;
	m->ghost = false;
	end_turn();
}

static uint64_t memory_of(const struct maker *m)
{
	return m->mads | m->bell.number << 4 | (uint64_t)m->overridden[1] << 40 |
	       (uint64_t)m->overridden[2] << 48 | (uint64_t)m->ghost << 56;
}

static void push_all(struct maker *m, uint32_t n, uint32_t dead)
{
	const struct ring_ref r = ref();
	bool held = false;

	while (m->mads < n) {
		mc_forget(5 + n * 4 + dead, memory_of(m) << 1 | held);
		if (model_mutant == BELL_BEFORE_PUSH)
			ring_bell(m);
		while (push(m) == RING_FULL) {
			hold(&r, m);
			held = true;
		}
		w.pushed = ++m->mads;
		if (model_mutant != BELL_BEFORE_PUSH)
			ring_bell(m);
		end_turn();
	}
	if (held)
		ring_release(&w.held);
}

/* Pushes n MADs; of a death it learns before the last, or after it. */
static void weftd(int n)
{
	struct maker m = {.bell = {.bell = &w.bell, .send = send_byte}};
	uint32_t dead;

	push_all(&m, n - 1, 0);
	dead = atomic_load_explicit(&w.died, memory_order_acquire);
	if (dead)
		bury(&m, dead);
	exorcise(&m, READERS + 1 - dead);
	push_all(&m, n, dead);
	if (!dead) {
		mc_wait_change(&w.died, sizeof w.died, 0);
		dead = atomic_load_explicit(&w.died, memory_order_acquire);
		bury(&m, dead);
	}
	while (m.ghost) {
		uint64_t seen = atomic_load_explicit(&w.bell, memory_order_acquire);

		mc_forget(
			1, (uint64_t)m.bell.number << 32 | m.overridden[1] << 8 | m.overridden[2]);
		exorcise(&m, READERS + 1 - dead);
		/* A timer, in truth. */
		if (m.ghost && !settled(&m, READERS + 1 - dead))
			mc_wait_change(&w.settled[READERS + 1 - dead], sizeof w.settled[0],
				m.overridden[READERS + 1 - dead] - 1);
		else if (m.ghost)
			mc_wait_change(&w.bell, sizeof w.bell, seen);
	}
}

static void session_ends(int arg)
{
	(void)arg;
	atomic_store_explicit(&w.died, (uint32_t)mc_dead(), memory_order_seq_cst);
}

/* ---- readers ---- */

static bool more(void *arg)
{
	const struct ring_ref r = ref();

	(void)arg;
	if (model_mutant == QUIET_WITHOUT_LOOK)
		return false;
	return !ring_is_empty(&r);
}

static bool take_byte(void *arg)
{
	uint32_t n = atomic_load_explicit(&w.bytes, memory_order_relaxed);

	(void)arg;
	while (n)
		if (atomic_compare_exchange_strong_explicit(
			    &w.bytes, &n, n - 1, memory_order_seq_cst, memory_order_relaxed))
			return true;
	return false;
}

/* bell_quiet() with a step left out, or two exchanged. */
static void badly_quiet(uint32_t who)
{
	uint64_t claim;
	bool found;

	if (model_mutant == NO_CLAIM) {
		if (!more(NULL) && take_byte(NULL))
			atomic_store_explicit(&w.bell, BELL_SILENT, memory_order_seq_cst);
		return;
	}
	if (!bell_claim(&w.bell, who, &claim))
		return;
	found = more(NULL);
	if (model_mutant == BYTE_AFTER_END) {
		if (bell_end(&w.bell, claim, found ? BELL_RUNG : BELL_SILENT) && !found)
			take_byte(NULL);
		return;
	}
	found = found || !take_byte(NULL);
	bell_end(&w.bell, claim, found ? BELL_RUNG : BELL_SILENT);
}

static void quiet(uint32_t who)
{
	const struct bell_consumer c = {
		.who = who, .settled = &w.settled[who], .more = more, .take = take_byte};

	if (model_mutant == NO_CLAIM || model_mutant == BYTE_AFTER_END || model_mutant == TWO_BYTES)
		badly_quiet(who);
	else
		bell_quiet(&w.bell, &c);
}

static void tell(const struct ring_ref *r)
{
	if (model_mutant == HELD_NOT_TOLD && ring_is_empty(r))
		return;
	if (ring_tells(r, &w.held))
		atomic_exchange_explicit(&w.told, 1, memory_order_seq_cst);
}

static bool fits(void *arg, const struct umad_record *rec)
{
	(void)rec;
	return *(int *)arg != TOO_SMALL;
}

static enum ring_result badly_take(const struct ring_ref *r, int way, struct umad_record *rec)
{
	uint64_t pos;
	enum ring_result result = ring_copy(r, &pos, rec);

	if (result != RING_OK)
		return result;
	if (way == TOO_SMALL)
		return RING_UNFIT;
	if (model_mutant == HEAD_WITHOUT_SWAP)
		atomic_store_explicit(&r->ends->head, pos + 1, memory_order_release);
	else if (!ring_swap(r, pos))
		return RING_LOST;
	ring_load(ring_slot(r, pos), rec);
	return RING_OK;
}

static enum ring_result take(const struct ring_ref *r, int way, struct umad_record *rec)
{
	if (model_mutant == SWAP_BEFORE_COPY || model_mutant == HEAD_WITHOUT_SWAP ||
		model_mutant == UNFIT_WITHOUT_LOOK)
		return badly_take(r, way, rec);
	return ring_take(r, fits, &way, rec);
}

static void check(const struct umad_record *rec, enum ring_result result)
{
	uint64_t mad = rec->word[0];

	mc_check(result != RING_BROKEN, "sane positions look broken");
	if (result == RING_UNFIT)
		mc_check(w.ends.head == mad - 1, "not the first MAD");
	if (result != RING_OK)
		return;
	mc_check(mad && mad <= w.ends.tail, "a MAD that was never pushed");
	mc_check(!w.got[mad - 1]++, "a MAD is read twice");
}

/* A read; true: there may be more. */
static bool read_one(uint32_t who, int way, uint32_t turns)
{
	const struct ring_ref r = ref();
	struct umad_record rec = {0};
	enum ring_result result = take(&r, way, &rec);

	check(&rec, result);
	mc_forget(3, turns << 8 | result);
	if (result == RING_LOST)
		return true;
	tell(&r);
	if (ring_is_empty(&r))
		quiet(who);
	mc_forget(4, turns << 8 | result);
	return result != RING_EMPTY;
}

/*
 * Nothing was there, though the socket is readable: in truth it asks again at once.  Here it waits
 * until weftd has done something since it asked, or another reader has gone.
 */
static void nap(uint32_t turns)
{
	if (bell_state(atomic_load_explicit(&w.bell, memory_order_acquire)) != BELL_RUNG)
		mc_wait_change(&w.turns, sizeof w.turns, turns);
}

static void reader(int who)
{
	for (;;) {
		uint32_t turns;

		mc_forget(2, 0);
		mc_wait_change(&w.bytes, sizeof w.bytes, 0);
		turns = atomic_load_explicit(&w.turns, memory_order_seq_cst);
		if (!read_one(who, 0, turns))
			nap(turns);
	}
}

/* Reads into too small a buffer, and goes. */
static void small_reader(int who)
{
	mc_wait_change(&w.bytes, sizeof w.bytes, 0);
	read_one(who, TOO_SMALL, 0);
	end_turn();
}

static void final(void)
{
	mc_check(mc_current_model()->threads[WEFTD].arg == w.pushed, "weftd sleeps on");
	for (int i = 0; i < w.pushed; i++)
		mc_check(w.got[i] == 1, w.got[i] ? "a MAD is read twice" : "lost wake-up");
	if (mc_stopped() >= 0)
		return;
	mc_check(!w.bytes, "a byte without a MAD");
	mc_check(bell_state(w.bell) == BELL_SILENT, "the bell is rung without a byte");
}

/* In the place of a reader. */
static void nobody(int who)
{
	(void)who;
}

#define THREADS(mads, second)                                                                      \
	{                                                                                          \
		{.name = "weftd", .run = weftd, .arg = (mads), .proc = WEFTD},                     \
			{.name = "reader 1", .run = reader, .arg = 1, .proc = 1},                  \
			{.name = "reader 2", .run = (second), .arg = 2, .proc = 2},                \
			{.name = "session", .run = session_ends, .recovery = true},                \
	}

static const struct mc_thread two_mads[] = THREADS(2, reader);
static const struct mc_thread three_mads[] = THREADS(3, reader);
static const struct mc_thread small[] = THREADS(2, small_reader);
static const struct mc_thread alone[] = THREADS(3, nobody);

#define MODEL(t, start, mem, stops, dies)                                                          \
	{                                                                                          \
		.name = "umad_recv", .state = &w, .size = sizeof(w), .memory = (mem),              \
		.init = (start), .final = final, .threads = (t), .n_threads = 4,                   \
		.may_stop = (stops), .may_die = (dies), .may_block = true, .max_steps = 200,       \
		.max_states = 12000000                                                             \
	}

const struct model_case umad_recv_cases[] = {
	{"2 MADs, a stop", MODEL(two_mads, two_slots, MC_TSO, 2, 0)},
	{"2 MADs, a death", MODEL(two_mads, two_slots, MC_TSO, 0, 2)},
	{"3 MADs, 1 slot, 1 reader", MODEL(alone, one_slot, MC_TSO, 0, 0)},
	{"a small buffer", MODEL(small, two_slots, MC_PSO, 0, 0)},
	{"2 MADs, 1 slot", MODEL(two_mads, one_slot, MC_TSO, 0, 0), .slow = true},
	{"2 MADs, 1 slot, a stop", MODEL(two_mads, one_slot, MC_TSO, 2, 0), .slow = true},
	{"2 MADs, 1 slot, a death", MODEL(two_mads, one_slot, MC_TSO, 0, 2), .slow = true},
	{"3 MADs, a stop", MODEL(three_mads, two_slots, MC_TSO, 2, 0), .slow = true},
	{"3 MADs, a death", MODEL(three_mads, two_slots, MC_TSO, 0, 2), .slow = true},
	{"swap before copy", MODEL(alone, one_slot, MC_TSO, 0, 0), SWAP_BEFORE_COPY},
	{"unfit without a look", MODEL(small, two_slots, MC_PSO, 0, 0), UNFIT_WITHOUT_LOOK},
	{"head without swap", MODEL(two_mads, two_slots, MC_TSO, 0, 0), HEAD_WITHOUT_SWAP},
	{"tail before the record", MODEL(small, two_slots, MC_PSO, 0, 0), TAIL_BEFORE_RECORD},
	{"bell before push", MODEL(two_mads, two_slots, MC_TSO, 0, 0), BELL_BEFORE_PUSH},
	{"no fence before the bell", MODEL(two_mads, two_slots, MC_TSO, 0, 0), RING_WITHOUT_FENCE},
	{"no byte for a claim", MODEL(two_mads, two_slots, MC_TSO, 0, 0), OVERRIDE_WITHOUT_BYTE},
	{"a byte on its way", MODEL(two_mads, two_slots, MC_TSO, 0, 0), NOT_RINGING},
	{"quiet without a look", MODEL(two_mads, two_slots, MC_TSO, 0, 0), QUIET_WITHOUT_LOOK},
	{"two bytes", MODEL(two_mads, two_slots, MC_TSO, 0, 0), TWO_BYTES},
	{"no claim", MODEL(two_mads, two_slots, MC_TSO, 0, 0), NO_CLAIM},
	{"byte after the end", MODEL(two_mads, two_slots, MC_TSO, 0, 0), BYTE_AFTER_END},
	{"nobody buries", MODEL(two_mads, two_slots, MC_TSO, 0, 2), NOBODY_BURIES},
	{"ghost before settled", MODEL(two_mads, two_slots, MC_TSO, 0, 2), GHOST_BEFORE_SETTLED},
	{"hold without a look", MODEL(alone, one_slot, MC_TSO, 0, 0), HOLD_WITHOUT_LOOK},
	{"held, not told", MODEL(alone, one_slot, MC_TSO, 0, 0), HELD_NOT_TOLD},
	{0},
};
