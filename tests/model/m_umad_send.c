// SPDX-License-Identifier: BSD-3-Clause
/*
 * mad/ring.h, send rings: two processes write MADs to one file, each into its own
 * ring; weftd sleeps on the socket of the file.  What was written is taken once and in order, also
 * when the other process is stopped between two steps or dies.
 */
#define RING_MODEL_WORDS 1

#include "mad/ring.h"
#include "models.h"

enum { WEFTD, WRITERS = 2, SLOTS_MAX = 2 };

enum send_mutant {
	LOOK_BEFORE_HEARD = 1,
	HEARD_BEFORE_BYTES,
	ONE_WORD, /* for all rings of the file */
	ROOM_BEFORE_COPY,
	NO_LOOK_AFTER_DEATH,
};

static struct {
	struct writer {
		struct ring_ends ends;
		struct ring_slot slots[SLOTS_MAX];
		_Atomic uint32_t knocked;
	} writer[1 + WRITERS];
	_Atomic uint32_t bytes; /* in weftd's end of the socket */
	/* ghosts */
	uint8_t taken[1 + WRITERS];
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

static struct ring_ref ref(int who)
{
	return (struct ring_ref){
		.ends = &w.writer[who].ends, .slots = w.writer[who].slots, .log_size = log_size};
}

static _Atomic uint32_t *knocked_of(int who)
{
	return &w.writer[model_mutant == ONE_WORD ? 1 : who].knocked;
}

static void send_byte(void)
{
	atomic_fetch_add_explicit(&w.bytes, 1, memory_order_seq_cst);
}

/* Writes two MADs; the second is given up if there is no room. */
static void writer(int who)
{
	const struct ring_ref r = ref(who);
	uint64_t tail = 0;

	for (unsigned i = 1; i <= 2; i++) {
		const struct umad_record rec = {.word = {i}};

		mc_forget(2, i);
		if (ring_push(&r, &tail, &rec) != RING_OK)
			break;
		if (ring_knock(knocked_of(who)))
			send_byte();
	}
}

/* In the place of a writer. */
static void nobody(int who)
{
	(void)who;
}

static void session_ends(int arg)
{
	(void)arg;
	if (model_mutant != NO_LOOK_AFTER_DEATH)
		send_byte();
}

static enum ring_result pop(const struct ring_ref *r, uint64_t *head, struct umad_record *rec)
{
	if (model_mutant != ROOM_BEFORE_COPY)
		return ring_pop(r, head, rec);
	if (*head == atomic_load_explicit(&r->ends->tail, memory_order_acquire))
		return RING_EMPTY;
	atomic_store_explicit(&r->ends->head, *head + 1, memory_order_seq_cst);
	ring_load(ring_slot(r, (*head)++), rec);
	return RING_OK;
}

static void take_all(int who, uint64_t *head)
{
	const struct ring_ref r = ref(who);
	struct umad_record rec;
	enum ring_result result;

	while ((result = pop(&r, head, &rec)) == RING_OK) {
		mc_check(rec.word[0] == *head, "overwritten, or out of order");
		w.taken[who]++;
	}
	mc_check(result == RING_EMPTY, "sane positions look broken");
}

static void weftd(int arg)
{
	uint64_t head[1 + WRITERS] = {0};

	(void)arg;
	for (;;) {
		mc_forget(1, head[1] << 8 | head[2]);
		mc_wait_change(&w.bytes, sizeof w.bytes, 0);
		if (model_mutant == HEARD_BEFORE_BYTES)
			for (int i = 1; i <= WRITERS; i++) {
				ring_heard(knocked_of(i));
				take_all(i, &head[i]);
			}
		atomic_exchange_explicit(&w.bytes, 0, memory_order_seq_cst);
		if (model_mutant == HEARD_BEFORE_BYTES)
			continue;
		for (int i = 1; i <= WRITERS; i++) {
			if (model_mutant == LOOK_BEFORE_HEARD)
				take_all(i, &head[i]);
			ring_heard(knocked_of(i));
			if (model_mutant != LOOK_BEFORE_HEARD)
				take_all(i, &head[i]);
		}
	}
}

static void final(void)
{
	for (int i = 1; i <= WRITERS; i++)
		if (mc_stopped() != i)
			mc_check(w.taken[i] == w.writer[i].ends.tail, "lost: weftd sleeps on");
}

#define THREADS(second)                                                                            \
	{                                                                                          \
		{.name = "weftd", .run = weftd, .proc = WEFTD},                                    \
			{.name = "writer 1", .run = writer, .arg = 1, .proc = 1},                  \
			{.name = "writer 2", .run = (second), .arg = 2, .proc = 2},                \
			{.name = "session", .run = session_ends, .recovery = true},                \
	}

static const struct mc_thread two[] = THREADS(writer);
static const struct mc_thread one[] = THREADS(nobody);

#define MODEL(t, start, mem, stops, dies)                                                          \
	{                                                                                          \
		.name = "umad_send", .state = &w, .size = sizeof(w), .memory = (mem),              \
		.init = (start), .final = final, .threads = (t), .n_threads = 4,                   \
		.may_stop = (stops), .may_die = (dies), .may_block = true, .max_steps = 200,       \
		.max_states = 12000000                                                             \
	}

const struct model_case umad_send_cases[] = {
	{"1 slot, a stop", MODEL(two, one_slot, MC_TSO, 2, 0)},
	{"1 slot, a death", MODEL(two, one_slot, MC_TSO, 0, 2)},
	{"1 writer, PSO", MODEL(one, two_slots, MC_PSO, 0, 2)},
	{"2 slots, a stop", MODEL(two, two_slots, MC_TSO, 2, 0), .slow = true},
	{"2 slots, a death", MODEL(two, two_slots, MC_TSO, 0, 2), .slow = true},
	{"look before heard", MODEL(one, two_slots, MC_TSO, 0, 0), LOOK_BEFORE_HEARD},
	{"bytes last", MODEL(one, two_slots, MC_TSO, 0, 0), HEARD_BEFORE_BYTES},
	{"one word", MODEL(two, one_slot, MC_TSO, 2, 0), ONE_WORD},
	{"room before copy", MODEL(one, one_slot, MC_TSO, 0, 0), ROOM_BEFORE_COPY},
	{"no look after a death", MODEL(one, one_slot, MC_TSO, 0, 2), NO_LOOK_AFTER_DEATH},
	{0},
};
