// SPDX-License-Identifier: BSD-3-Clause
/*
 * mad/ring.h and mad/bell.h, a receive ring: weftd pushes MADs, two processes read them and sleep
 * on the socket in between; one may be stopped or die.  Each MAD is read once and whole, nobody
 * sleeps while one is there, and in the end no byte is left in the socket, even after a death.  Who
 * reads alone is told of nothing that is not there, by epoll of either kind.
 */
#define RING_MODEL_WORDS 1

#include "mad/bell.h"
#include "mad/ring.h"
#include "models.h"

enum { WEFTD, READERS = 2, SLOTS_MAX = 2, MADS_MAX = 4, TOO_SMALL = 8 };

enum recv_mutant {
	SWAP_BEFORE_COPY = 1,
	UNFIT_WITHOUT_LOOK, /* nobody looks whether what does not fit is still the first */
	HEAD_WITHOUT_SWAP,  /* who takes a record stores the head */
	TAIL_BEFORE_RECORD,
	BELL_BEFORE_PUSH,
	RING_WITHOUT_FENCE,
	OVERRIDE_WITHOUT_BYTE, /* who finds a claim leaves it to the claimer to see the push */
	NOT_RINGING,           /* the bell is rung before the byte is sent */
	ARRIVED_AT_ONCE,       /* nobody asks whether the byte that is on its way lies there */
	NOT_HEARD,             /* nobody sees that it does: what was, before there were numbers */
	ANY_BYTE,              /* each byte is taken for the one that is on its way */
	RING_FOR_NOTHING,      /* also when all was read */
	QUIET_WITHOUT_LOOK,
	TWO_BYTES,       /* who was overridden leaves its byte */
	NO_CLAIM,        /* the byte is taken without one */
	BYTE_AFTER_END,  /* the bell is silent before the byte is taken */
	END_BY_ONE_SWAP, /* a claim ends as overridden when another reads meanwhile */
	NOBODY_BURIES,
	GHOST_BEFORE_SETTLED,
	HOLD_WITHOUT_LOOK,
	HELD_NOT_TOLD, /* at half of the ring, but not when it is empty */
};

enum { BYTES_MAX = 8 };

static struct {
	struct ring_ends ends;
	struct ring_slot slots[SLOTS_MAX];
	_Atomic uint32_t settled[1 + READERS];
	_Atomic uint32_t held;
	_Atomic uint32_t bytes;    /* in the readers' end of the socket */
	_Atomic uint32_t came;     /* how often one did, for who waits for edges */
	_Atomic uint32_t told;     /* a byte in weftd's */
	_Atomic uint32_t died;     /* weftd knows of it */
	_Atomic uint32_t turns;    /* of weftd that ended: see nap() */
	uint8_t number[BYTES_MAX]; /* what each byte holds, as atomic as their count */
	/* ghosts */
	uint8_t pushed;
	uint8_t got[MADS_MAX];
} w;

static uint32_t log_size;
static bool edges;  /* somebody waits for them */
static bool defers; /* weftd may ring later than it pushes */

static void slots(uint32_t log, bool later)
{
	edges = false;
	log_size = log;
	defers = later;
}

static void one_slot(void)
{
	slots(0, false);
}

static void two_slots(void)
{
	slots(1, false);
}

static void one_slot_late(void)
{
	slots(0, true);
}

static void two_slots_late(void)
{
	slots(1, true);
}

static void for_edges(void)
{
	slots(1, true);
	edges = true;
}

static struct ring_ref ref(void)
{
	return (struct ring_ref){.ends = &w.ends, .slots = w.slots, .log_size = log_size};
}

static uint64_t bell(void)
{
	return atomic_load_explicit(&w.ends.head, memory_order_acquire);
}

/* ---- weftd ---- */

struct maker {
	struct bell_producer bell;
	uint64_t tail;
	uint32_t mads;
	uint32_t overridden[1 + READERS];
	uint32_t ghosts;
	bool unrung;
};

static void send_byte(void *arg, uint8_t number)
{
	(void)arg;
	w.number[atomic_fetch_add_explicit(&w.bytes, 1, memory_order_seq_cst)] = number;
	if (edges)
		atomic_fetch_add_explicit(&w.came, 1, memory_order_seq_cst);
}

static void overrode(struct maker *m, uint32_t who)
{
	if (who)
		m->overridden[who]++;
}

/* bell_ring(), but it leaves a claim to the claimer, or lets a byte that is on its way be claimed.
 */
static void badly_ring(struct maker *m)
{
	struct bell_producer *p = &m->bell;
	uint64_t word, next;

	atomic_thread_fence(memory_order_seq_cst);
	word = bell();
	do {
		if (bell_state(word) == BELL_RUNG || (uint32_t)word == (uint32_t)m->tail)
			return;
		next = bell_word(word, BELL_RUNG, p->number + 1);
	} while (!bell_swap(&p->ring, &word, next));
	p->number++;
	overrode(m, bell_claimer(word));
	if (bell_state(word) == BELL_SILENT || model_mutant == NOT_RINGING)
		send_byte(NULL, (uint8_t)p->number);
}

static void ring_bell(struct maker *m)
{
	uint64_t tail = m->tail;

	m->unrung = false;
	if (model_mutant == RING_WITHOUT_FENCE &&
		bell_state(atomic_load_explicit(&w.ends.head, memory_order_relaxed)) == BELL_RUNG)
		return;
	if (model_mutant == RING_FOR_NOTHING)
		tail += 1 << 30;
	if (model_mutant == OVERRIDE_WITHOUT_BYTE || model_mutant == NOT_RINGING)
		badly_ring(m);
	else
		overrode(m, bell_ring(&m->bell, tail));
}

static enum ring_result push(struct maker *m)
{
	const struct ring_ref r = ref();
	const struct umad_record rec = {.word = {m->mads + 1}};
	struct ring_slot *s;

	if (model_mutant != TAIL_BEFORE_RECORD)
		return ring_push(&r, &m->tail, &rec);
	if ((uint32_t)m->tail - ring_head(&r) >= ring_size(&r))
		return RING_FULL;
	s = ring_slot(&r, (uint32_t)m->tail);
	atomic_store_explicit(&w.ends.tail, ++m->tail, memory_order_relaxed);
	ring_store(s, &rec);
	return RING_OK;
}

static void end_turn(void)
{
	atomic_fetch_add_explicit(&w.turns, 1, memory_order_seq_cst);
}

/* The ring is full: waits until a reader tells that there is room. */
static void hold(const struct ring_ref *r, struct maker *m)
{
	bool room = ring_hold(r, &w.held, m->tail);

	if (room && model_mutant != HOLD_WITHOUT_LOOK)
		return;
	if (m->unrung)
		ring_bell(m);
	end_turn();
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

static void bury(struct maker *m, uint32_t who)
{
	if (model_mutant == NOBODY_BURIES)
		return;
	if (bell_bury(&m->bell, who))
		m->overridden[who]++;
	m->ghosts =
		m->overridden[who] - atomic_load_explicit(&w.settled[who], memory_order_acquire);
	if (model_mutant == GHOST_BEFORE_SETTLED)
		m->ghosts = 1;
	ring_bell(m);
	end_turn();
}

static void exorcise(struct maker *m, uint32_t living)
{
	if (!m->ghosts || !settled(m, living))
		return;
	bell_exorcise(&m->bell, bytes, &m->ghosts);
	end_turn();
}

static uint64_t memory_of(const struct maker *m)
{
	return m->mads | m->bell.number << 4 | (uint64_t)m->overridden[1] << 40 |
	       (uint64_t)m->overridden[2] << 48 | (uint64_t)m->ghosts << 56 |
	       (uint64_t)m->unrung << 60;
}

static uint32_t all(void)
{
	return (uint32_t)mc_current_model()->threads[WEFTD].arg;
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
		m->unrung = true;
		if (model_mutant == BELL_BEFORE_PUSH)
			continue;
		if (!defers || m->mads == all() || mc_choose(2))
			ring_bell(m);
		end_turn();
	}
	if (held)
		ring_release(&w.held);
}

/* By a timer, in truth: here it waits until that can make a difference. */
static void wait_to_exorcise(struct maker *m, uint32_t living)
{
	uint32_t before = atomic_load_explicit(&w.settled[living], memory_order_acquire);
	uint64_t word;

	mc_forget(1, (uint64_t)m->bell.number << 32 | m->overridden[1] << 16 |
			     m->overridden[2] << 8 | before);
	exorcise(m, living);
	word = bell();
	if (m->ghosts && before != m->overridden[living])
		mc_wait_change(&w.settled[living], sizeof w.settled[0], before);
	else if (m->ghosts && bell_state(word) != BELL_SILENT)
		mc_wait_change(&w.ends.head, sizeof w.ends.head, word);
}

/* Pushes n MADs; of a death it learns before the last, or after it. */
static void weftd(int n)
{
	struct maker m = {.bell = {.ring = ref(), .send = send_byte}};
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
	while (m.ghosts)
		wait_to_exorcise(&m, READERS + 1 - dead);
}

static void session_ends(int arg)
{
	(void)arg;
	atomic_store_explicit(&w.died, (uint32_t)mc_dead(), memory_order_seq_cst);
}

/* ---- readers ---- */

static bool take_byte(void *arg)
{
	uint32_t n = atomic_load_explicit(&w.bytes, memory_order_relaxed);

	(void)arg;
	while (n)
		if (atomic_compare_exchange_strong_explicit(
			    &w.bytes, &n, n - 1, memory_order_seq_cst, memory_order_relaxed)) {
			memmove(w.number, w.number + 1, BYTES_MAX - 1);
			return true;
		}
	return false;
}

static bool lies(void *arg, uint8_t number)
{
	uint32_t n;

	(void)arg;
	if (model_mutant == ARRIVED_AT_ONCE)
		return true;
	if (model_mutant == NOT_HEARD)
		return false;
	n = atomic_load_explicit(&w.bytes, memory_order_seq_cst);
	if (model_mutant == ANY_BYTE)
		return n;
	return memchr(w.number, number, n);
}

static struct bell_consumer consumer(uint32_t who)
{
	return (struct bell_consumer){.ring = ref(),
		.who = who,
		.settled = &w.settled[who],
		.lies = lies,
		.take = take_byte};
}

/* bell_end() with a step left out, or two exchanged. */
static void badly_end(const struct bell_consumer *c, uint64_t claim)
{
	const struct ring_ref r = ref();
	uint64_t word = claim, next;
	bool found = model_mutant != QUIET_WITHOUT_LOOK && !ring_is_empty(&r);

	if (model_mutant != BYTE_AFTER_END)
		found = found || !take_byte(NULL);
	next = bell_word(word, found ? BELL_RUNG : BELL_SILENT, bell_number(word));
	if (bell_swap(&r, &word, next)) {
		if (model_mutant == BYTE_AFTER_END && !found)
			take_byte(NULL);
		return;
	}
	if (model_mutant != END_BY_ONE_SWAP)
		return;
	if (found)
		take_byte(NULL);
	atomic_fetch_add_explicit(c->settled, 1, memory_order_release);
}

static void end(const struct bell_consumer *c, uint64_t claim)
{
	uint64_t word;

	if (!claim)
		return;
	switch (model_mutant) {
	case NO_CLAIM:
		word = bell();
		if (take_byte(NULL))
			bell_swap(&c->ring, &word, bell_word(word, BELL_SILENT, bell_number(word)));
		break;
	case BYTE_AFTER_END:
	case TWO_BYTES:
	case QUIET_WITHOUT_LOOK:
	case END_BY_ONE_SWAP:
		badly_end(c, claim);
		break;
	default:
		bell_end(c, claim);
	}
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

/* bell_take() with two steps exchanged, or one left out. */
static enum ring_result badly_take(
	const struct bell_consumer *c, int way, struct umad_record *rec, uint64_t *claim)
{
	uint64_t word = bell(), was = word, next;
	uint32_t n = ring_tail(&c->ring) - (uint32_t)word;

	if (!n)
		return RING_EMPTY;
	if (!bell_arrived(c, word))
		return RING_COMING;
	next = bell_next(c, word, n, claim);
	if (model_mutant != SWAP_BEFORE_COPY)
		ring_load(ring_slot(&c->ring, (uint32_t)was), rec);
	if (way == TOO_SMALL)
		return RING_UNFIT;
	if (model_mutant == HEAD_WITHOUT_SWAP)
		atomic_store_explicit(&c->ring.ends->head, next, memory_order_release);
	else if (!bell_swap(&c->ring, &word, next))
		return RING_LOST;
	if (model_mutant == SWAP_BEFORE_COPY)
		ring_load(ring_slot(&c->ring, (uint32_t)was), rec);
	return RING_OK;
}

static enum ring_result take(
	const struct bell_consumer *c, int way, struct umad_record *rec, uint64_t *claim)
{
	if (model_mutant == SWAP_BEFORE_COPY || model_mutant == HEAD_WITHOUT_SWAP ||
		model_mutant == UNFIT_WITHOUT_LOOK)
		return badly_take(c, way, rec, claim);
	return bell_take(c, fits, &way, rec, claim);
}

static void check(const struct umad_record *rec, enum ring_result result)
{
	uint64_t mad = rec->word[0];

	mc_check(result != RING_BROKEN, "sane positions look broken");
	if (result == RING_UNFIT)
		mc_check((uint32_t)w.ends.head == mad - 1, "not the first MAD");
	if (result != RING_OK)
		return;
	mc_check(mad && mad <= w.ends.tail, "a MAD that was never pushed");
	mc_check(!w.got[mad - 1]++, "a MAD is read twice");
}

/* A read; what the caller remembers of its past is local. */
static enum ring_result read_one(uint32_t who, int way, uint32_t local)
{
	const struct bell_consumer c = consumer(who);
	struct umad_record rec = {0};
	uint64_t claim = 0;
	enum ring_result result = take(&c, way, &rec, &claim);

	check(&rec, result);
	mc_forget(3, (claim >> 32) << 28 | (claim & 15) << 24 | local << 4 | result);
	if (result != RING_OK && result != RING_EMPTY)
		return result;
	tell(&c.ring);
	if (result == RING_EMPTY)
		claim = bell_claim(&c);
	end(&c, claim);
	mc_forget(4, local << 8 | result);
	return result;
}

/*
 * Nothing was there, though the socket is readable: in truth it asks again at once.  Here it waits
 * until weftd has done something since it asked, or another reader has gone.
 */
static void nap(uint32_t turns)
{
	if (bell_state(bell()) != BELL_RUNG)
		mc_wait_change(&w.turns, sizeof w.turns, turns);
}

static void reader(int who)
{
	for (;;) {
		enum ring_result result;
		uint32_t turns;

		mc_forget(2, 0);
		mc_wait_change(&w.bytes, sizeof w.bytes, 0);
		turns = atomic_load_explicit(&w.turns, memory_order_seq_cst);
		result = read_one(who, 0, turns);
		if (result == RING_EMPTY || result == RING_COMING)
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

/* Alone, by epoll: each time that the socket is readable there is a MAD. */
static void by_level(int who)
{
	for (;;) {
		mc_forget(6, 0);
		mc_wait_change(&w.bytes, sizeof w.bytes, 0);
		mc_check(read_one(who, 0, 0) == RING_OK, "readable, and nothing to be read");
	}
}

/* The same with EPOLLET: each event has one, and none comes without. */
static void by_edge(int who)
{
	uint32_t seen = 0;

	for (;;) {
		unsigned n = 0;

		mc_forget(6, seen);
		mc_wait_change(&w.came, sizeof w.came, seen);
		seen = atomic_load_explicit(&w.came, memory_order_seq_cst);
		if (!atomic_load_explicit(&w.bytes, memory_order_seq_cst))
			continue; /* epoll_wait() looks once more before it tells */
		while (read_one(who, 0, seen << 4 | n) == RING_OK)
			n++;
		mc_check(n, "an event, and nothing to be read");
	}
}

/* One that also reads without asking, when weftd has just pushed. */
static void also_in_between(int who)
{
	enum ring_result result = RING_OK;

	for (unsigned n = 0; n < 2 && result == RING_OK; n++) {
		mc_forget(7, n);
		mc_wait_change(&w.ends.tail, sizeof w.ends.tail, n);
		result = read_one(who, 0, n);
	}
	by_edge(who);
}

static void final(void)
{
	uint64_t word = w.ends.head;

	mc_check(w.pushed == all(), "weftd sleeps on");
	for (int i = 0; i < w.pushed; i++)
		mc_check(w.got[i] == 1, w.got[i] ? "a MAD is read twice" : "lost wake-up");
	if (mc_stopped() >= 0)
		return;
	mc_check(!w.bytes, "a byte without a MAD");
	mc_check(bell_state(word) == BELL_SILENT, "the bell is rung without a byte");
}

/* In the place of a reader. */
static void nobody(int who)
{
	(void)who;
}

#define THREADS(mads, first, second)                                                               \
	{                                                                                          \
		{.name = "weftd", .run = weftd, .arg = (mads), .proc = WEFTD},                     \
			{.name = "reader 1", .run = (first), .arg = 1, .proc = 1},                 \
			{.name = "reader 2", .run = (second), .arg = 2, .proc = 2},                \
			{.name = "session", .run = session_ends, .recovery = true},                \
	}

static const struct mc_thread two_mads[] = THREADS(2, reader, reader);
static const struct mc_thread three_mads[] = THREADS(3, reader, reader);
static const struct mc_thread small[] = THREADS(2, reader, small_reader);
static const struct mc_thread alone[] = THREADS(3, reader, nobody);
static const struct mc_thread level[] = THREADS(3, by_level, nobody);
static const struct mc_thread edge[] = THREADS(3, by_edge, nobody);
static const struct mc_thread in_between[] = THREADS(3, also_in_between, nobody);
static const struct mc_thread level_4[] = THREADS(4, by_level, nobody);
static const struct mc_thread edge_4[] = THREADS(4, by_edge, nobody);

#define MODEL(t, start, mem, stops, dies)                                                          \
	{                                                                                          \
		.name = "umad_recv", .state = &w, .size = sizeof(w), .memory = (mem),              \
		.init = (start), .final = final, .threads = (t), .n_threads = 4,                   \
		.may_stop = (stops), .may_die = (dies), .may_block = true, .max_steps = 300,       \
		.max_states = 12000000                                                             \
	}

const struct model_case umad_recv_cases[] = {
	{"by level", MODEL(level, two_slots_late, MC_TSO, 0, 0)},
	{"by edge", MODEL(edge, for_edges, MC_TSO, 0, 0)},
	{"by edge and in between", MODEL(in_between, for_edges, MC_TSO, 0, 0)},
	{"2 MADs, a stop", MODEL(two_mads, two_slots, MC_TSO, 2, 0)},
	{"2 MADs, a death", MODEL(two_mads, two_slots, MC_TSO, 0, 2)},
	{"3 MADs, 1 slot, 1 reader", MODEL(alone, one_slot, MC_TSO, 0, 0)},
	{"a small buffer", MODEL(small, two_slots, MC_PSO, 0, 0)},
	{"4 MADs, by level", MODEL(level_4, two_slots_late, MC_TSO, 0, 0), .slow = true},
	{"4 MADs, by edge", MODEL(edge_4, for_edges, MC_TSO, 0, 0), .slow = true},
	{"2 MADs, late, a stop", MODEL(two_mads, two_slots_late, MC_TSO, 2, 0), .slow = true},
	{"2 MADs, late, a death", MODEL(two_mads, two_slots_late, MC_TSO, 0, 2), .slow = true},
	{"2 MADs, 1 slot", MODEL(two_mads, one_slot_late, MC_TSO, 0, 0), .slow = true},
	{"2 MADs, 1 slot, a stop", MODEL(two_mads, one_slot, MC_TSO, 2, 0), .slow = true},
	{"2 MADs, 1 slot, a death", MODEL(two_mads, one_slot, MC_TSO, 0, 2), .slow = true},
	{"3 MADs, a stop", MODEL(three_mads, two_slots_late, MC_TSO, 2, 0), .slow = true},
	{"3 MADs, a death", MODEL(three_mads, two_slots_late, MC_TSO, 0, 2), .slow = true},
	{"swap before copy", MODEL(alone, one_slot, MC_TSO, 0, 0), SWAP_BEFORE_COPY},
	{"unfit without a look", MODEL(small, two_slots, MC_PSO, 0, 0), UNFIT_WITHOUT_LOOK},
	{"head without swap", MODEL(two_mads, two_slots, MC_TSO, 0, 0), HEAD_WITHOUT_SWAP},
	{"tail before the record", MODEL(small, two_slots, MC_PSO, 0, 0), TAIL_BEFORE_RECORD},
	{"bell before push", MODEL(two_mads, two_slots, MC_TSO, 0, 0), BELL_BEFORE_PUSH},
	{"no fence before the bell", MODEL(two_mads, two_slots, MC_TSO, 0, 0), RING_WITHOUT_FENCE},
	{"no byte for a claim", MODEL(two_mads, two_slots, MC_TSO, 0, 0), OVERRIDE_WITHOUT_BYTE},
	{"rung before the byte", MODEL(edge, for_edges, MC_TSO, 0, 0), NOT_RINGING},
	{"arrived at once", MODEL(edge, for_edges, MC_TSO, 0, 0), ARRIVED_AT_ONCE},
	{"not heard", MODEL(level, two_slots, MC_TSO, 0, 0), NOT_HEARD},
	{"not heard, edge", MODEL(edge, for_edges, MC_TSO, 0, 0), NOT_HEARD},
	{"any byte", MODEL(two_mads, two_slots, MC_TSO, 0, 0), ANY_BYTE},
	{"ring for nothing", MODEL(level, two_slots, MC_TSO, 0, 0), RING_FOR_NOTHING},
	{"quiet without a look", MODEL(two_mads, two_slots, MC_TSO, 0, 0), QUIET_WITHOUT_LOOK},
	{"two bytes", MODEL(two_mads, two_slots, MC_TSO, 0, 0), TWO_BYTES},
	{"no claim", MODEL(two_mads, two_slots, MC_TSO, 0, 0), NO_CLAIM},
	{"byte after the end", MODEL(two_mads, two_slots, MC_TSO, 0, 0), BYTE_AFTER_END},
	{"end by one swap", MODEL(two_mads, two_slots, MC_TSO, 0, 0), END_BY_ONE_SWAP},
	{"nobody buries", MODEL(two_mads, two_slots, MC_TSO, 0, 2), NOBODY_BURIES},
	{"ghost before settled", MODEL(two_mads, two_slots, MC_TSO, 0, 2), GHOST_BEFORE_SETTLED},
	{"hold without a look", MODEL(alone, one_slot, MC_TSO, 0, 0), HOLD_WITHOUT_LOOK},
	{"held, not told", MODEL(alone, one_slot, MC_TSO, 0, 0), HELD_NOT_TOLD},
	{0},
};
