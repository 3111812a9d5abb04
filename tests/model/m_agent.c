// SPDX-License-Identifier: BSD-3-Clause
/*
 * pages/agent_slot.h: two requesters ask an agent, over one slot or two, and may give up, be
 * stopped or die, or take a request back and ask again.  Requests are served in order, once, from
 * their own bounce buffer, and not begun after they were taken back; nobody sleeps for ever.
 */
#include "pages/agent_slot.h"

#include "models.h"

enum {
	REQUESTERS = 2,
	AGENT = REQUESTERS,
	CHUNKS = 2,
	SLOTS = 2,
	GIVES_UP = 1 << 8,
	ANEW = 1 << 9
};

enum agent_mutant {
	NO_SECOND_LOOK = 1, /* the agent does not look whose the half is that it claimed */
	FREE_WHILE_SERVED,  /* the requester frees a slot of which a half is being served */
	WEFTD_FREES,        /* so does weftd, for a dead one */
	CANCEL_NOT_ATOMIC,
	RING_WITHOUT_LOOK,   /* the agent sleeps without a look at the bell */
	FINISH_BEFORE_SLEEP, /* the requester sleeps without a look at the phase */
	ANEW_WHEN_DONE,      /* what was served counts as taken back, and is asked for again */
	ANEW_WHEN_SERVED,    /* so does what is being served */
};

/* A futex: who sleeps is woken by a wake-up alone. */
struct futex {
	_Atomic uint32_t wakes;
};

static struct {
	struct agent_slot slot[SLOTS];
	struct agent_bell bell;
	struct futex bell_futex, phase_futex[SLOTS][2];
	_Atomic uint32_t bounce[SLOTS][2]; /* requester + 1, chunk in the next digit */
	/* ghosts */
	int serving[SLOTS][2];
	int began[REQUESTERS], left[REQUESTERS];
} w;

static int slots_in_use(void)
{
	return (int)(intptr_t)mc_current_model()->threads[0].arg >> 4 & 15;
}

static void wake(struct futex *f)
{
	atomic_fetch_add_explicit(&f->wakes, 1, memory_order_seq_cst);
}

static void sleep_on(struct futex *f, _Atomic uint32_t *word, uint32_t seen)
{
	uint32_t wakes = atomic_load_explicit(&f->wakes, memory_order_seq_cst);

	if (atomic_load_explicit(word, memory_order_seq_cst) == seen)
		mc_wait_change(&f->wakes, sizeof f->wakes, wakes);
}

static void ring(void)
{
	if (agent_ring(&w.bell))
		wake(&w.bell_futex);
}

/* ---- a requester ---- */

static int take(int me)
{
	int n = slots_in_use();

	for (;;) {
		uint64_t seen = 0;

		mc_forget(1, 0);
		for (int i = 0; i < n; i++) {
			if (agent_take(&w.slot[i], me + 1))
				return i;
			seen = atomic_load_explicit(&w.slot[i].word, memory_order_acquire);
		}
		/* The real one naps and tries again. */
		if (seen & (AGENT_OWNER_MASK | AGENT_ORPHAN))
			mc_wait_change(&w.slot[n - 1].word, sizeof w.slot[0].word, seen);
	}
}

static void send_chunk(int me, int s, int chunk)
{
	mc_check(!w.serving[s][chunk], "a bounce buffer is written while it is served");
	atomic_store_explicit(&w.bounce[s][chunk], (me + 1) | chunk << 4, memory_order_relaxed);
	mc_check(!w.serving[s][chunk], "a bounce buffer is written while it is served");
	agent_post(&w.slot[s].half[chunk]);
	ring();
}

static void await(int s, int chunk)
{
	struct agent_half *h = &w.slot[s].half[chunk];

	for (;;) {
		uint32_t seen;

		mc_forget(2, (uint64_t)(s * 2 + chunk));
		if (agent_collect(h))
			return;
		seen = atomic_load_explicit(&h->phase, memory_order_relaxed);

		if (model_mutant == FINISH_BEFORE_SLEEP) {
			atomic_store_explicit(&h->sleeper, 1, memory_order_relaxed);
			mc_wait_change(&w.phase_futex[s][chunk].wakes, 4,
				atomic_load_explicit(
					&w.phase_futex[s][chunk].wakes, memory_order_seq_cst));
		} else if (seen != AGENT_DONE && agent_sleeps(h, seen)) {
			sleep_on(&w.phase_futex[s][chunk], &h->phase, seen);
		}
		agent_woke(h);
	}
}

static bool cancel(struct agent_half *h)
{
	if (model_mutant != CANCEL_NOT_ATOMIC)
		return agent_quit(h);
	if (atomic_load_explicit(&h->phase, memory_order_acquire) == AGENT_SERVING)
		return false;
	atomic_store_explicit(&h->phase, AGENT_IDLE, memory_order_seq_cst);
	return true;
}

static bool leave(struct agent_slot *s)
{
	bool first, second;

	if (model_mutant != CANCEL_NOT_ATOMIC && model_mutant != FREE_WHILE_SERVED)
		return agent_leave(s);
	first = cancel(&s->half[0]);
	second = cancel(&s->half[1]);
	if ((first && second) || model_mutant == FREE_WHILE_SERVED) {
		agent_free_word(s);
		return false;
	}
	atomic_fetch_or_explicit(&s->word, AGENT_ORPHAN, memory_order_acq_rel);
	return true;
}

static bool taken_back(struct agent_half *h)
{
	if (model_mutant == ANEW_WHEN_DONE)
		return agent_quit(h);
	return agent_cancel(h) || model_mutant == ANEW_WHEN_SERVED;
}

/* What was asked for cannot go on now, and begins anew: another slot, the same request. */
static int begin_anew(int me, int s)
{
	if (!taken_back(&w.slot[s].half[0]))
		return s;
	if (leave(&w.slot[s]))
		ring();
	s = take(me);
	send_chunk(me, s, 0);
	return s;
}

static void requester(int arg)
{
	/* The first has two chunks and may give up, the second has one and waits. */
	int me = arg & 15, chunks = me || arg & ANEW ? 1 : CHUNKS, s = take(me);
	bool gives_up = arg & GIVES_UP && mc_choose(2);

	for (int chunk = 0; chunk < chunks; chunk++)
		send_chunk(me, s, chunk);
	if (arg & ANEW && mc_choose(2))
		s = begin_anew(me, s);
	for (int chunk = 0; !gives_up && chunk < chunks; chunk++)
		await(s, chunk);
	if (leave(&w.slot[s]))
		ring();
	w.left[me] = 1;
}

/* ---- the agent ---- */

static void serve(int s, int half)
{
	uint32_t tag = atomic_load_explicit(&w.bounce[s][half], memory_order_relaxed);
	int who = (int)(tag & 15) - 1, chunk = (int)(tag >> 4);

	mc_check(who >= 0 && chunk == half, "serves what nobody wrote");
	/* One that was claimed before cannot be taken back: then the slot is an orphan. */
	mc_check(!w.left[who] || w.slot[s].word & AGENT_ORPHAN, "begins what was taken back");
	mc_check(w.began[who] == chunk, "serves twice, or out of order");
	w.began[who]++;
	w.serving[s][half] = 1;
	mc_step("copy");
	mc_check(atomic_load_explicit(&w.bounce[s][half], memory_order_relaxed) == tag,
		"the bounce buffer changes under the agent");
	w.serving[s][half] = 0;
}

static enum agent_found look_at(struct agent_slot *s, struct agent_turn *t)
{
	uint64_t word;

	if (model_mutant != NO_SECOND_LOOK)
		return agent_look_at(s, t);
	word = atomic_load_explicit(&s->word, memory_order_acquire);
	if (word & AGENT_ORPHAN) {
		agent_reclaim(s);
		return AGENT_AGAIN;
	}
	if (t->word != word) {
		t->word = word;
		t->half = 0;
	}
	return word && agent_claim(&s->half[t->half]) ? AGENT_CLAIMED : AGENT_NOTHING;
}

static bool serve_slot(int s, struct agent_turn *t)
{
	enum agent_found found;
	bool any = false;

	while ((found = look_at(&w.slot[s], t)) == AGENT_CLAIMED) {
		_Atomic uint32_t *phase;
		unsigned half = t->half;

		serve(s, half);
		if (agent_served(&w.slot[s], t, &phase))
			wake(&w.phase_futex[s][half]);
		any = true;
	}
	return any || found == AGENT_AGAIN;
}

static void agent(int arg)
{
	struct agent_turn turn[SLOTS] = {{0}};
	int n = slots_in_use();

	(void)arg;
	for (;;) {
		uint32_t seen;

		mc_forget(3,
			turn[0].word << 4 ^ turn[0].half ^ turn[1].word << 32 ^ turn[1].half << 1);
		seen = atomic_load_explicit(&w.bell.rings, memory_order_seq_cst);
		bool any = false;

		for (int s = 0; s < n; s++)
			any |= serve_slot(s, &turn[s]);
		if (any)
			continue;
		if (model_mutant == RING_WITHOUT_LOOK) {
			atomic_store_explicit(&w.bell.asleep, 1, memory_order_relaxed);
			mc_wait_change(&w.bell_futex.wakes, 4,
				atomic_load_explicit(&w.bell_futex.wakes, memory_order_seq_cst));
		} else if (agent_may_sleep(&w.bell, seen)) {
			sleep_on(&w.bell_futex, &w.bell.rings, seen);
		}
		agent_awake(&w.bell);
	}
}

static void weftd(int arg)
{
	int n = slots_in_use();

	(void)arg;
	for (int s = 0; s < n; s++) {
		if (model_mutant == WEFTD_FREES) {
			uint64_t v = atomic_load_explicit(&w.slot[s].word, memory_order_acquire);

			if ((v & AGENT_ATTACH_MASK) == (unsigned)mc_dead() + 1)
				agent_reclaim(&w.slot[s]);
		} else if (agent_orphan(&w.slot[s], mc_dead() + 1)) {
			ring();
		}
	}
}

static void final(void)
{
	for (int i = 0; i < REQUESTERS; i++) {
		if (mc_stopped() == i || mc_dead() == i)
			continue;
		/* With one slot, a stopped holder keeps it. */
		if (mc_stopped() >= 0 && slots_in_use() == 1)
			continue;
		mc_check(mc_finished(i), "a requester sleeps for ever");
	}
	for (int s = 0; mc_stopped() < 0 && s < slots_in_use(); s++)
		mc_check(!(w.slot[s].word & (AGENT_OWNER_MASK | AGENT_ORPHAN)),
			"a slot was never given back");
}

static const struct mc_thread giving_up[] = {
	{.name = "requester 0", .run = requester, .arg = 1 << 4 | GIVES_UP, .proc = 0},
	{.name = "requester 1", .run = requester, .arg = 1 << 4 | 1, .proc = 1},
	{.name = "agent", .run = agent, .proc = AGENT},
	{.name = "weftd", .run = weftd, .recovery = true},
};

static const struct mc_thread anew[] = {
	{.name = "requester 0", .run = requester, .arg = 1 << 4 | ANEW, .proc = 0},
	{.name = "requester 1", .run = requester, .arg = 1 << 4 | 1, .proc = 1},
	{.name = "agent", .run = agent, .proc = AGENT},
	{.name = "weftd", .run = weftd, .recovery = true},
};

static const struct mc_thread dying[] = {
	{.name = "requester 0", .run = requester, .arg = 1 << 4, .proc = 0},
	{.name = "requester 1", .run = requester, .arg = 1 << 4 | 1, .proc = 1},
	{.name = "agent", .run = agent, .proc = AGENT},
	{.name = "weftd", .run = weftd, .recovery = true},
};

static const struct mc_thread two_slots[] = {
	{.name = "requester 0", .run = requester, .arg = 2 << 4, .proc = 0},
	{.name = "requester 1", .run = requester, .arg = 2 << 4 | 1, .proc = 1},
	{.name = "agent", .run = agent, .proc = AGENT},
	{.name = "weftd", .run = weftd, .recovery = true},
};

#define MODEL(mem, who, stop, die)                                                                 \
	{                                                                                          \
		.name = "agent", .state = &w, .size = sizeof(w), .memory = (mem), .final = final,  \
		.threads = (who), .n_threads = 4, .may_stop = (stop), .may_die = (die),            \
		.may_block = true, .max_steps = 400, .max_states = 6000000                         \
	}

const struct model_case agent_cases[] = {
	{"gives up", MODEL(MC_TSO, giving_up, 0, 0)},
	{"death", MODEL(MC_TSO, dying, 0, 1)},
	{"begins anew", MODEL(MC_TSO, anew, 0, 0)},
	{"gives up, weak stores", MODEL(MC_PSO, giving_up, 0, 0), .slow = true},
	{"gives up, death of either", MODEL(MC_TSO, giving_up, 0, 3), .slow = true},
	{"two slots, stop", MODEL(MC_TSO, two_slots, 1, 0), .slow = true},
	{"no second look", MODEL(MC_TSO, giving_up, 0, 0), NO_SECOND_LOOK},
	{"freed while it is served", MODEL(MC_TSO, giving_up, 0, 0), FREE_WHILE_SERVED},
	{"weftd frees", MODEL(MC_TSO, dying, 0, 1), WEFTD_FREES},
	{"cancel is not atomic", MODEL(MC_TSO, giving_up, 0, 0), CANCEL_NOT_ATOMIC},
	{"agent sleeps without a look", MODEL(MC_TSO, giving_up, 0, 0), RING_WITHOUT_LOOK},
	{"requester sleeps without a look", MODEL(MC_TSO, giving_up, 0, 0), FINISH_BEFORE_SLEEP},
	{"anew when done", MODEL(MC_TSO, anew, 0, 0), ANEW_WHEN_DONE},
	{"anew while it is served", MODEL(MC_TSO, anew, 0, 0), ANEW_WHEN_SERVED},
	{0},
};
