// SPDX-License-Identifier: BSD-3-Clause
/* The search: depth first over all transitions, cut off at states seen before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mc_int.h"

enum { MAX_TRANSITIONS = 96, MAX_DEPTH = 4000 };

enum tr_kind { TR_STEP, TR_FLUSH, TR_STOP, TR_DIE };

struct transition {
	uint8_t kind;
	uint8_t who;  /* thread; of an event: process */
	uint16_t arg; /* buffer entry, choice, or what reaches memory */
};

static struct {
	struct mc_result *result;
	bool trace;
	uint64_t *seen; /* open addressing, 0 = empty */
	size_t seen_size;
	int depth;
	uint64_t keys[MAX_DEPTH];
	struct transition path[MAX_DEPTH];
	struct mc_op ops[MAX_DEPTH]; /* for the trace */
	struct mc_buffered flushed[MAX_DEPTH];
} ex;

/* ---- states seen ---- */

static uint64_t hash_bytes(uint64_t h, const void *p, size_t size)
{
	const unsigned char *b = p;
	uint64_t w;

	for (; size >= 8; size -= 8, b += 8) {
		memcpy(&w, b, 8);
		h = mc_mix(h, w);
	}
	w = size;
	memcpy(&w, b, size);
	return mc_mix(h, w);
}

static uint64_t state_key(void)
{
	const struct mc_model *m = mc_world.m;
	uint64_t h = 1;

	for (int i = 0; i < mc_world.n_regions; i++)
		h = hash_bytes(h, mc_world.region[i].p, mc_world.region[i].size);
	for (int i = 0; i < m->n_threads; i++) {
		const struct mc_thr *t = &mc_world.thr[i];

		h = mc_mix(h, t->status | t->n_buf << 8 | t->n_sure << 16);
		h = mc_mix(h, t->history);
		for (int k = 0; k < t->n_buf; k++) {
			h = mc_mix(h, (uintptr_t)t->buf[k].p - (uintptr_t)m->state);
			h = mc_mix(h, t->buf[k].v);
		}
	}
	h = mc_mix(h, (unsigned)(mc_world.stopped + 1) << 8 | (unsigned)(mc_world.dead + 1));
	return h ? h : 1;
}

static void seen_put(uint64_t key)
{
	size_t i = key & (ex.seen_size - 1);

	while (ex.seen[i])
		i = (i + 1) & (ex.seen_size - 1);
	ex.seen[i] = key;
}

static void seen_grow(void)
{
	uint64_t *old = ex.seen;
	size_t n = ex.seen_size;

	ex.seen_size = n ? 2 * n : 1 << 16;
	ex.seen = calloc(ex.seen_size, sizeof(*ex.seen));
	if (!ex.seen) {
		fprintf(stderr, "model: out of memory; use smaller bounds\n");
		exit(1);
	}
	for (size_t i = 0; i < n; i++)
		if (old[i])
			seen_put(old[i]);
	free(old);
}

/* True if the present state is new; remembers it. */
static bool seen_add(void)
{
	uint64_t key = ex.keys[ex.depth] = state_key();
	size_t i;

	if (2 * (ex.result->states + 1) > ex.seen_size)
		seen_grow();
	for (i = key & (ex.seen_size - 1); ex.seen[i]; i = (i + 1) & (ex.seen_size - 1))
		if (ex.seen[i] == key)
			return false;
	ex.seen[i] = key;
	ex.result->states++;
	return true;
}

/* True if one thread alone has come back to the present state: it spins. */
static bool spins(void)
{
	uint8_t who = ex.depth ? ex.path[ex.depth - 1].who : 0;

	for (int d = ex.depth - 1; d >= 0; d--) {
		if (ex.path[d].kind != TR_STEP || ex.path[d].who != who)
			return false;
		if (ex.keys[d] == ex.keys[ex.depth])
			return true;
	}
	return false;
}

/* ---- snapshots ---- */

static size_t snapshot_size(void)
{
	size_t total = sizeof(mc_world), n;

	for (int i = 0; i < mc_world.n_regions; i++)
		total += mc_world.region[i].size;
	for (int i = 0; i < mc_world.m->n_threads; i++) {
		mc_run_stack(i, &n);
		total += n;
	}
	return total;
}

static void *snapshot_save(void)
{
	unsigned char *buf = malloc(snapshot_size()), *b = buf;
	size_t n;

	if (!buf)
		abort();
	memcpy(b, &mc_world, sizeof(mc_world));
	b += sizeof(mc_world);
	for (int i = 0; i < mc_world.n_regions; i++) {
		memcpy(b, mc_world.region[i].p, mc_world.region[i].size);
		b += mc_world.region[i].size;
	}
	for (int i = 0; i < mc_world.m->n_threads; i++) {
		void *stack = mc_run_stack(i, &n);

		memcpy(b, stack, n);
		b += n;
	}
	return buf;
}

static void snapshot_restore(const void *buf)
{
	const unsigned char *b = buf;
	size_t n;

	memcpy(&mc_world, b, sizeof(mc_world));
	b += sizeof(mc_world);
	for (int i = 0; i < mc_world.n_regions; i++) {
		memcpy(mc_world.region[i].p, b, mc_world.region[i].size);
		b += mc_world.region[i].size;
	}
	for (int i = 0; i < mc_world.m->n_threads; i++) {
		void *stack = mc_run_stack(i, &n);

		memcpy(stack, b, n);
		b += n;
	}
}

/* ---- transitions ---- */

static void add(struct transition *t, int *n, enum tr_kind kind, int who, int arg)
{
	if (*n == MAX_TRANSITIONS)
		abort();
	t[(*n)++] = (struct transition){.kind = kind, .who = who, .arg = arg};
}

static int collect(struct transition *t)
{
	int n = 0;

	for (int i = 0; i < mc_world.m->n_threads; i++) {
		const struct mc_thr *th = &mc_world.thr[i];
		int ways = th->op.kind == MC_OP_CHOOSE ? (int)th->op.a : 1;

		if (mc_run_enabled(i))
			for (int c = 0; c < ways; c++)
				add(t, &n, TR_STEP, i, c);
		for (int k = 0; k < th->n_buf; k++)
			if (mc_run_may_flush(i, k))
				add(t, &n, TR_FLUSH, i, k);
	}
	return n;
}

static bool belongs(int i, int proc)
{
	return mc_world.thr[i].status == MC_READY && !mc_world.m->threads[i].recovery &&
	       mc_world.m->threads[i].proc == proc;
}

/*
 * A thread ends somewhere between its last operation and its next; of the stores there any
 * number took place.  Counts the combinations over the threads of a process.
 */
static int end_ways(int proc)
{
	int ways = 0;

	for (int i = 0; i < mc_world.m->n_threads; i++)
		if (belongs(i, proc))
			ways = (ways ? ways : 1) *
			       (mc_world.thr[i].n_buf - mc_world.thr[i].n_sure + 1);
	return ways;
}

static int collect_events(struct transition *t, int n)
{
	if (mc_world.stopped >= 0 || mc_world.dead >= 0)
		return n;
	for (int p = 0; p < MC_MAX_PROCS; p++) {
		if (mc_world.m->may_stop >> p & 1)
			for (int w = 0; w < end_ways(p); w++)
				add(t, &n, TR_STOP, p, w);
		if (mc_world.m->may_die >> p & 1)
			for (int w = 0; w < end_ways(p); w++)
				add(t, &n, TR_DIE, p, w);
	}
	return n;
}

static void end_process(int proc, int way, enum mc_status status)
{
	for (int i = 0; i < mc_world.m->n_threads; i++) {
		const struct mc_thr *t = &mc_world.thr[i];
		int choices;

		if (!belongs(i, proc))
			continue;
		choices = t->n_buf - t->n_sure + 1;
		mc_run_end(i, t->n_sure + way % choices, status);
		way /= choices;
	}
	if (status == MC_STOPPED)
		mc_world.stopped = proc;
	else
		mc_world.dead = proc;
}

static void apply(const struct transition *t)
{
	ex.path[ex.depth] = *t;
	ex.result->transitions++;
	switch (t->kind) {
	case TR_STEP: {
		struct mc_op op = mc_world.thr[t->who].op;

		mc_run_step(t->who, t->arg);
		ex.ops[ex.depth] = op;
		break;
	}
	case TR_FLUSH:
		ex.flushed[ex.depth] = mc_world.thr[t->who].buf[t->arg];
		mc_run_flush(t->who, t->arg);
		break;
	case TR_STOP:
		end_process(t->who, t->arg, MC_STOPPED);
		break;
	case TR_DIE:
		end_process(t->who, t->arg, MC_DEAD);
		break;
	}
	ex.depth++;
	if (mc_world.m->every)
		mc_world.m->every();
}

/* ---- traces ---- */

/* An address as region and offset. */
static void trace_place(const void *p)
{
	for (int i = 0; i < mc_world.n_regions; i++) {
		size_t off = (uintptr_t)p - (uintptr_t)mc_world.region[i].p;

		if (off < mc_world.region[i].size) {
			fprintf(stderr, " %d+0x%zx", i, off);
			return;
		}
	}
	fprintf(stderr, " %p", p);
}

static void trace_op(const struct mc_op *op)
{
	static const char *const names[] = {[MC_OP_NONE] = "?",
		[MC_OP_LOAD] = "load",
		[MC_OP_STORE] = "store",
		[MC_OP_STORE_SC] = "store (seq_cst)",
		[MC_OP_XCHG] = "exchange",
		[MC_OP_ADD] = "add",
		[MC_OP_OR] = "or",
		[MC_OP_AND] = "and",
		[MC_OP_CAS] = "cas",
		[MC_OP_FENCE] = "fence",
		[MC_OP_WAIT] = "wakes up",
		[MC_OP_CHOOSE] = "choose",
		[MC_OP_STEP] = "step",
		[MC_OP_START] = "starts"};

	fprintf(stderr, "%s: %s", op->what, names[op->kind]);
	if (op->p)
		trace_place(op->p);
	if (op->kind == MC_OP_CAS)
		fprintf(stderr, " %#lx -> %#lx", (long)op->a, (long)op->b);
	else if (op->kind == MC_OP_STORE || op->kind == MC_OP_STORE_SC || op->kind == MC_OP_XCHG ||
		 op->kind == MC_OP_ADD || op->kind == MC_OP_OR || op->kind == MC_OP_AND)
		fprintf(stderr, " %#lx", (long)op->a);
}

/* Loads print no value: the trace holds the operation as it was before it took place. */
static void trace_path(const char *message)
{
	fprintf(stderr, "%s: %s\n", mc_world.m->name, message);
	for (int d = 0; d < ex.depth; d++) {
		const struct transition *t = &ex.path[d];

		if (t->kind == TR_STOP || t->kind == TR_DIE) {
			fprintf(stderr, "%4d process %d %s (%d)\n", d, t->who,
				t->kind == TR_STOP ? "is stopped" : "dies", t->arg);
			continue;
		}
		fprintf(stderr, "%4d %-12s ", d, mc_world.m->threads[t->who].name);
		if (t->kind == TR_FLUSH) {
			fprintf(stderr, "  (%s: now in memory: %#lx", ex.flushed[d].what,
				(long)ex.flushed[d].v);
			trace_place(ex.flushed[d].p);
			fprintf(stderr, ")");
		} else {
			trace_op(&ex.ops[d]);
		}
		fprintf(stderr, "\n");
	}
}

/* ---- the search ---- */

static bool violated(void)
{
	if (!mc_world.failure)
		return false;
	ex.result->violated = true;
	snprintf(ex.result->message, sizeof(ex.result->message), "%s", mc_world.failure);
	if (ex.trace)
		trace_path(mc_world.failure);
	return true;
}

static void check_end(void)
{
	ex.result->ends++;
	for (int i = 0; i < mc_world.m->n_threads && !mc_world.m->may_block; i++)
		if (mc_world.thr[i].status == MC_READY && mc_world.thr[i].op.kind != MC_OP_START)
			mc_fail("a thread never finishes");
	if (mc_world.m->final)
		mc_world.m->final();
}

/* Returns true if the search is over: a violation, or too many states. */
static bool explore(void)
{
	struct transition t[MAX_TRANSITIONS];
	void *snapshot = NULL;
	int depth = ex.depth, n;
	bool over = false;

	if (violated())
		return true;
	if (!seen_add()) {
		if (spins())
			mc_fail("a thread spins and nothing changes");
		return violated();
	}
	if (ex.result->states > mc_world.m->max_states || depth == MAX_DEPTH - 1) {
		ex.result->gave_up = true;
		return true;
	}
	n = collect(t);
	if (!n) {
		check_end();
		if (violated())
			return true;
	}
	n = collect_events(t, n);
	if (n > 1)
		snapshot = snapshot_save();
	for (int i = 0; i < n && !over; i++) {
		if (i) {
			snapshot_restore(snapshot);
			ex.depth = depth;
		}
		apply(&t[i]);
		over = explore();
	}
	free(snapshot);
	return over;
}

void mc_explore(const struct mc_model *m, struct mc_result *r, bool trace)
{
	*r = (struct mc_result){0};
	free(ex.seen);
	memset(&ex, 0, sizeof(ex));
	ex.result = r;
	ex.trace = trace;
	memset(&mc_world, 0, sizeof(mc_world));
	mc_world.m = m;
	mc_add_region(m->state, m->size);
	memset(m->state, 0, m->size);
	if (m->init)
		m->init();
	mc_run_start();
	explore();
}
