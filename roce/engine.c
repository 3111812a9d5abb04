// SPDX-License-Identifier: BSD-3-Clause
#include "roce/engine.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "hca/proc/proc.h"
#include "roce/ack.h"
#include "roce/ask.h"
#include "roce/beside.h"
#include "roce/faults.h"
#include "roce/join.h"
#include "roce/mcast.h"
#include "roce/proto/req_timer.h"
#include "roce/rx.h"
#include "roce/serve.h"
#include "roce/watch.h"

enum {
	TURN_BYTES = 64 << 10,         /* that a flow sends before it is another's turn */
	TURNS = 64,                    /* of one pass */
	ROUNDS = 4,                    /* for what others asked for meanwhile */
	POLLS_NS = 50 * NSEC_PER_USEC, /* who looked so lately polls */
	CHECK_NS = 500 * NSEC_PER_USEC,
	LOOKS = 16, /* of one pass, by the watcher; in a row, before what is due is seen to */
};

/* What packets come and go by. */
enum doors { DOOR_WIRE = 1 << 0, DOOR_BESIDE = 1 << 1, DOOR_BELL = 1 << 2 };

static struct {
	struct lock lock;
	_Atomic unsigned kicks;      /* enum engine_why, of who found it running */
	struct flow *_Atomic called; /* the list of struct flow.called, last first */
	struct flow *first, **end;   /* those whose turn it is, in order; by struct flow.behind */
	struct deadlines due;
	_Atomic uint32_t looks;
	_Atomic uint64_t looked_ns;
	_Atomic bool looking; /* a thread of the program does, just now */
	unsigned busy_looks;  /* in a row, that found packets */
	bool left;            /* flows had no turn in the last pass */
	uint64_t checked_ns;
	_Atomic unsigned broken; /* enum doors: the program has closed some of their descriptors */
} engine = {.end = &engine.first};

/* ---- whose turn it is ---- */

void engine_call(struct flow *f, unsigned calls)
{
	struct flow *head;

	if (atomic_fetch_or_explicit(&f->calls, calls, memory_order_acq_rel))
		return; /* it is on a list */
	head = atomic_load_explicit(&engine.called, memory_order_relaxed);
	do
		atomic_store_explicit(&f->called, head, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(
		&engine.called, &head, f, memory_order_release, memory_order_relaxed));
}

static void line_up(struct flow *f)
{
	f->behind = NULL;
	*engine.end = f;
	engine.end = &f->behind;
}

void engine_touch(struct flow *f, unsigned calls)
{
	if (!atomic_fetch_or_explicit(&f->calls, calls, memory_order_acq_rel))
		line_up(f);
}

/* Those who were called by others join the line, in the order of calls. */
static void take_called(void)
{
	struct flow *f = NULL, *back = NULL;

	if (atomic_load_explicit(&engine.called, memory_order_relaxed))
		f = atomic_exchange_explicit(&engine.called, NULL, memory_order_acquire);
	while (f) {
		f->behind = back;
		back = f;
		f = atomic_load_explicit(&f->called, memory_order_relaxed);
	}
	while (back) {
		f = back->behind;
		line_up(back);
		back = f;
	}
}

static struct flow *take_first(void)
{
	struct flow *f = engine.first;

	if (!f)
		return NULL;
	engine.first = f->behind;
	if (!engine.first)
		engine.end = &engine.first;
	return f;
}

/* ---- a turn ---- */

static void set_deadline(struct flow *f)
{
	uint64_t when = f->asks ? rc_req_deadline(&f->req) : 0;

	when = deadline_earlier(deadline_earlier(when, f->again_ns),
		deadline_earlier(f->kept_due, ack_deadline(f)));
	if (!when)
		deadline_clear(&engine.due, &f->due);
	else if (f->due.when != when || !f->due.pos)
		deadline_set(&engine.due, &f->due, when);
}

static bool wants_to_ask(unsigned calls)
{
	return calls & (FLOW_POSTED | FLOW_ANSWERED | FLOW_DUE | FLOW_MORE);
}

/* The requester; *put: it sent something, which has not left yet.  True: there is more. */
static bool ask(struct flow *f, struct exec *x, bool due, uint64_t now, bool *put)
{
	uint64_t before = f->put;
	bool more;

	if (!ask_enter(f, x)) {
		f->again_ns = now + NSEC_PER_MSEC / 10;
		return false;
	}
	more = ask_run(f, x, TURN_BYTES, due, now);
	*put = f->put != before;
	return more;
}

/* Who does not poll answers late, if ever. */
static bool program_polls(uint64_t now)
{
	return now - engine_looked_ns() < POLLS_NS;
}

static void acknowledge(struct flow *f, struct exec *x, uint64_t now, bool rides)
{
	uint32_t owed = f->resp.owed;

	if (!owed)
		return;
	if (ack_is_due(f, now, rides || !program_polls(now)))
		serve_answer(f, x, 0, true);
	ack_note(f, now, f->resp.owed == 0, rides);
}

/* In a worker, for which some of it was left. */
static void take_late(struct flow *f, struct exec *x, uint64_t now)
{
	f->for_worker = f->late.first && !ask_enter(f, x);
	if (f->late.first && !f->for_worker)
		ask_late(f, now);
}

static void turn(struct flow *f, struct exec *x, uint64_t now)
{
	unsigned calls = atomic_exchange_explicit(&f->calls, 0, memory_order_acq_rel);
	bool more, put = false;

	if (x->is_worker)
		take_late(f, x, now);
	ask_leave(x);
	if (f->kept.first && calls & (FLOW_RECEIVE | FLOW_DUE))
		serve_kept(f, x, now);
	more = serve_answer(f, x, TURN_BYTES, false);
	if (calls & FLOW_POSTED)
		ack_note_post(f, now);
	if (wants_to_ask(calls))
		more |= ask(f, x, calls & FLOW_DUE, now, &put);
	acknowledge(f, x, now, put);
	ask_leave(x);
	flow_count_up(f, x);
	set_deadline(f);
	if (more && !f->for_worker)
		engine_touch(f, FLOW_MORE);
	if (engine.first == f) /* what it sends next may be of one size with what it sent last */
		tx_flush_most(x);
	else
		tx_flush(x);
}

static void take_turns(struct exec *x, uint64_t now)
{
	struct flow *f;

	take_called();
	for (unsigned n = 0; n < TURNS && tx_has_room() && (f = take_first()); n++)
		turn(f, x, now);
	tx_flush(x);
	engine.left = engine.first;
}

/* ---- a pass ---- */

static struct flow *flow_of(struct deadline *d)
{
	return (struct flow *)((char *)d - offsetof(struct flow, due));
}

static void take_due(uint64_t now)
{
	struct deadline *d;

	while ((d = deadline_pop(&engine.due, now)))
		engine_touch(flow_of(d), FLOW_DUE);
}

static void due_ack(struct flow *f)
{
	engine_touch(f, FLOW_ASKED);
}

static void begin_look(uint64_t now)
{
	uint32_t looks = atomic_load_explicit(&engine.looks, memory_order_relaxed);

	atomic_store_explicit(&engine.looks, looks + 1, memory_order_relaxed);
	atomic_store_explicit(&engine.looked_ns, now, memory_order_relaxed);
	atomic_store_explicit(&engine.looking, true, memory_order_relaxed);
}

/* True: packets came. */
static bool look(struct exec *x, uint64_t now, bool watches)
{
	bool came;

	if (!watches)
		begin_look(now);
	came = rx_look(x, now);
	ask_leave(x);
	if (!watches && !came)
		ack_idle(now, due_ack);
	if (faults_next())
		faults_release(x, now);
	/* an answer may lie behind what came, but not for ever */
	engine.busy_looks = came ? engine.busy_looks + 1 : 0;
	if (engine.busy_looks % LOOKS == 0)
		take_due(now);
	return came;
}

/*
 * Looks, and answers what came.  Who looks all the time does not look twice; the watcher does until
 * nothing is there, for to sleep and to be woken costs it, and who wakes it, more.
 */
static void look_and_answer(struct exec *x, uint64_t now, bool watches)
{
	unsigned looks = watches ? LOOKS : 1;
	bool came;

	do {
		came = look(x, now, watches);
		take_turns(x, now);
		if (came && --looks)
			now = clock_ns();
	} while (came && looks);
	if (!watches)
		atomic_store_explicit(&engine.looking, false, memory_order_relaxed);
}

/* Our descriptors, which the program may have closed, and may have others at their numbers. */
static void check_whole(uint64_t now)
{
	unsigned broken = 0;

	if ((!join_sockets() && beside_fd() < 0) || now - engine.checked_ns < CHECK_NS)
		return;
	engine.checked_ns = now;
	if (join_sockets() && !(join_whole() && mcast_whole())) {
		broken |= DOOR_WIRE;
		join_drop();
	}
	broken |= beside_whole() ? 0 : DOOR_BESIDE;
	broken |= watch_whole() ? 0 : DOOR_BELL;
	if (broken)
		atomic_fetch_or_explicit(&engine.broken, broken, memory_order_release);
}

/* Without the engine's lock, since it asks weftd. */
static void mend(void)
{
	unsigned broken = atomic_load_explicit(&engine.broken, memory_order_relaxed);

	if (!broken || (broken & DOOR_WIRE && join_wire()))
		return;
	broken = atomic_exchange_explicit(&engine.broken, 0, memory_order_acq_rel);
	if (broken & DOOR_WIRE)
		mcast_mend();
	if (broken & DOOR_BESIDE)
		beside_mend();
	if (broken)
		watch_mend();
}

static void pass(unsigned why, bool watches)
{
	struct exec *x = exec_get();
	uint64_t now = clock_ns();

	if (!x)
		return;
	check_whole(now);
	tx_flush(x);
	take_turns(x, now);
	if (why & (ENGINE_LOOK | ENGINE_WATCH))
		look_and_answer(x, now, watches);
	exec_put(x);
}

uint64_t engine_next(void)
{
	return engine.left && tx_has_room()
		       ? 1
		       : deadline_earlier(deadline_next(&engine.due), faults_next());
}

void engine_run(unsigned why)
{
	bool watches = why & ENGINE_WATCH, wake;
	unsigned round = 0;

	if (!watches)
		watch_awake();
	if (!lock_try(&engine.lock)) {
		atomic_fetch_or_explicit(&engine.kicks, why, memory_order_seq_cst);
		if (!lock_try(&engine.lock))
			return;
	}
	do {
		why |= atomic_exchange_explicit(&engine.kicks, 0, memory_order_seq_cst);
		pass(why, why & ENGINE_WATCH); /* then for a thread that found it running */
		wake = ++round == ROUNDS;
		wake |= watch_until(engine_next(), watches);
		why = 0;
		lock_drop(&engine.lock);
		if (wake)
			watch_wake();
		atomic_thread_fence(memory_order_seq_cst);
	} while (round < ROUNDS && atomic_load_explicit(&engine.kicks, memory_order_relaxed) &&
		 lock_try(&engine.lock));
	mend();
}

void engine_pass(unsigned why)
{
	pass(why, false);
	watch_until(engine_next(), false);
}

uint32_t engine_looks(void)
{
	return atomic_load_explicit(&engine.looks, memory_order_relaxed);
}

uint64_t engine_looked_ns(void)
{
	return atomic_load_explicit(&engine.looked_ns, memory_order_relaxed);
}

bool engine_looking(void)
{
	return atomic_load_explicit(&engine.looking, memory_order_relaxed);
}

/* ---- for who adds and deletes flows ---- */

void engine_stop(void)
{
	lock_take(&engine.lock);
}

void engine_go(void)
{
	bool kicked;

	lock_drop(&engine.lock);
	atomic_thread_fence(memory_order_seq_cst);
	kicked = atomic_load_explicit(&engine.kicks, memory_order_relaxed);
	if (kicked)
		engine_run(ENGINE_CALLS);
}

void engine_settle(struct flow *f)
{
	struct exec *x = exec_get();

	if (x) {
		serve_answer(f, x, 0, true);
		tx_flush(x);
	}
	exec_put(x);
}

void engine_forget(struct flow *f)
{
	struct flow *all, *g;

	take_called();
	all = engine.first;
	engine.first = NULL;
	engine.end = &engine.first;
	while ((g = all)) {
		all = g->behind;
		if (g != f)
			line_up(g);
	}
	ack_forget(f);
	deadline_clear(&engine.due, &f->due);
}

void engine_forked_child(void)
{
	atomic_store_explicit(&engine.lock.word, 0, memory_order_relaxed);
	atomic_store_explicit(&engine.kicks, 0, memory_order_relaxed);
	atomic_store_explicit(&engine.called, NULL, memory_order_relaxed);
	engine.first = NULL;
	engine.end = &engine.first;
	engine.due.count = 0;
	engine.left = false;
	engine.looking = false;
	engine.broken = 0;
	ack_forked_child();
	flow_forked_child();
	tx_forked_child();
}
