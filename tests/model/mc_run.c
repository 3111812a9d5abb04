// SPDX-License-Identifier: BSD-3-Clause
/* Modelled threads: coroutines that give way before every operation, and their store buffers. */
#include "mc_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mc_world mc_world;

static _Alignas(4096) unsigned char stacks[MC_MAX_THREADS][MC_STACK];
static ucontext_t first[MC_MAX_THREADS];
static jmp_buf engine;
static int current = -1; /* thread that runs now */

static uint64_t mem_get(const void *p, size_t size)
{
	uint64_t v = 0;

	memcpy(&v, p, size);
	return v;
}

static void mem_put(void *p, size_t size, uint64_t v)
{
	memcpy(p, &v, size);
}

/* ---- memory with a special meaning ---- */

void mc_add_region(void *p, size_t size)
{
	if (mc_world.n_regions == MC_MAX_REGIONS)
		abort();
	mc_world.region[mc_world.n_regions++] = (struct mc_region){p, size};
}

void mc_ignore(void *p, size_t size)
{
	if (mc_world.n_ignored == MC_MAX_ODD)
		abort();
	mc_world.ignored[mc_world.n_ignored++] = (struct mc_region){p, size};
}

void mc_weaken(void *p)
{
	if (mc_world.n_weak == MC_MAX_ODD)
		abort();
	mc_world.weak[mc_world.n_weak++] = p;
}

static bool is_ignored(const void *p)
{
	for (int i = 0; i < mc_world.n_ignored; i++)
		if ((uintptr_t)p - (uintptr_t)mc_world.ignored[i].p < mc_world.ignored[i].size)
			return true;
	return false;
}

static bool is_weak(const void *p)
{
	for (int i = 0; i < mc_world.n_weak; i++)
		if (mc_world.weak[i] == p)
			return true;
	return false;
}

/* ---- switching ---- */

static __attribute__((noinline)) void to_engine(struct mc_thr *t)
{
	t->low = (uintptr_t)__builtin_frame_address(0) - MC_STACK_SLACK;
	if (!_setjmp(t->ctx))
		_longjmp(engine, 1);
}

static __attribute__((noinline)) void to_thread(int i)
{
	current = i;
	if (!_setjmp(engine))
		_longjmp(mc_world.thr[i].ctx, 1);
	current = -1;
}

static void entry(int i)
{
	struct mc_thr *t = &mc_world.thr[i];
	const struct mc_thread *def = &mc_world.m->threads[i];

	if (def->recovery) {
		t->op = (struct mc_op){.kind = MC_OP_START, .what = def->name};
		to_engine(t);
	}
	def->run(def->arg);
	t->status = MC_DONE;
	t->history = 0;
	_longjmp(engine, 1);
}

static __attribute__((noinline)) void to_new_thread(int i)
{
	current = i;
	getcontext(&first[i]);
	first[i].uc_stack.ss_sp = stacks[i];
	first[i].uc_stack.ss_size = MC_STACK;
	first[i].uc_link = NULL;
	makecontext(&first[i], (void (*)(void))entry, 1, i);
	if (!_setjmp(engine))
		setcontext(&first[i]);
	current = -1;
}

void mc_run_start(void)
{
	mc_world.stopped = mc_world.dead = -1;
	current = -1;
	mc_world.failure = NULL;
	memset(mc_world.thr, 0, sizeof(mc_world.thr));
	for (int i = 0; i < mc_world.m->n_threads; i++)
		to_new_thread(i);
}

void *mc_run_stack(int i, size_t *size)
{
	struct mc_thr *t = &mc_world.thr[i];

	if (t->status != MC_READY) {
		*size = 0;
		return stacks[i];
	}
	*size = (uintptr_t)stacks[i] + MC_STACK - t->low;
	return (void *)t->low;
}

/* ---- store buffers ---- */

static void buf_remove(struct mc_thr *t, int k)
{
	memmove(&t->buf[k], &t->buf[k + 1], (t->n_buf - k - 1) * sizeof(t->buf[0]));
	t->n_buf--;
	if (k < t->n_sure)
		t->n_sure--;
	memset(&t->buf[t->n_buf], 0, sizeof(t->buf[0]));
}

bool mc_run_may_flush(int i, int k)
{
	struct mc_thr *t = &mc_world.thr[i];

	if (k == 0)
		return t->n_buf > 0;
	if (mc_world.m->memory != MC_PSO || k >= t->n_buf || t->buf[k].release)
		return false;
	for (int j = 0; j < k; j++)
		if (t->buf[j].p == t->buf[k].p)
			return false;
	return true;
}

void mc_run_flush(int i, int k)
{
	struct mc_buffered *b = &mc_world.thr[i].buf[k];

	mem_put(b->p, b->size, b->v);
	buf_remove(&mc_world.thr[i], k);
}

void mc_run_end(int i, int keep, enum mc_status status)
{
	struct mc_thr *t = &mc_world.thr[i];

	while (keep-- > 0)
		mc_run_flush(i, 0);
	memset(t->buf, 0, sizeof(t->buf));
	t->n_buf = t->n_sure = 0;
	t->history = 0;
	t->status = status;
}

static void buf_push(struct mc_thr *t, const struct mc_op *op)
{
	t->buf[t->n_buf++] = (struct mc_buffered){
		.p = op->p, .size = op->size, .v = op->a, .release = op->release, .what = op->what};
}

static uint64_t read_through(struct mc_thr *t, const struct mc_op *op)
{
	for (int k = t->n_buf - 1; k >= 0; k--)
		if (t->buf[k].p == op->p)
			return t->buf[k].v;
	return mem_get(op->p, op->size);
}

/* ---- operations ---- */

bool mc_run_enabled(int i)
{
	struct mc_thr *t = &mc_world.thr[i];

	if (t->status != MC_READY)
		return false;
	switch (t->op.kind) {
	case MC_OP_STORE:
		return mc_world.m->memory == MC_SC || t->n_buf < MC_BUFFER;
	case MC_OP_STORE_SC:
	case MC_OP_XCHG:
	case MC_OP_ADD:
	case MC_OP_OR:
	case MC_OP_AND:
	case MC_OP_CAS:
	case MC_OP_FENCE:
		return t->n_buf == 0;
	case MC_OP_WAIT:
		return mem_get(t->op.p, t->op.size) != t->op.a;
	case MC_OP_START:
		return mc_world.dead >= 0;
	default:
		return true;
	}
}

static void op_rmw(struct mc_op *op)
{
	uint64_t v = mem_get(op->p, op->size);

	op->result = v;
	op->ok = true;
	if (op->kind == MC_OP_XCHG)
		v = op->a;
	else if (op->kind == MC_OP_ADD)
		v += op->a;
	else if (op->kind == MC_OP_OR)
		v |= op->a;
	else if (op->kind == MC_OP_AND)
		v &= op->a;
	else if (v == op->a)
		v = op->b;
	else
		op->ok = false;
	if (op->ok)
		mem_put(op->p, op->size, v);
}

static void op_do(struct mc_thr *t, struct mc_op *op)
{
	switch (op->kind) {
	case MC_OP_LOAD:
		op->result = read_through(t, op);
		break;
	case MC_OP_STORE:
		if (mc_world.m->memory != MC_SC) {
			buf_push(t, op);
			break;
		}
		/* fall through */
	case MC_OP_STORE_SC:
		mem_put(op->p, op->size, op->a);
		break;
	case MC_OP_XCHG:
	case MC_OP_ADD:
	case MC_OP_OR:
	case MC_OP_AND:
	case MC_OP_CAS:
		op_rmw(op);
		break;
	default:
		break;
	}
}

void mc_run_step(int i, uint64_t choice)
{
	struct mc_thr *t = &mc_world.thr[i];

	t->op.result = choice;
	op_do(t, &t->op);
	t->n_sure = t->n_buf;
	t->history = mc_mix(mc_mix(t->history, t->op.kind), t->op.result * 2 + t->op.ok);
	if (++t->steps > mc_world.m->max_steps)
		mc_world.failure = "a thread takes more steps than it may: livelock";
	to_thread(i);
}

/* Called by the running thread; outside of threads (init, final) it acts on memory directly. */
static struct mc_op *perform(struct mc_op op)
{
	static struct mc_op direct;
	struct mc_thr *t;

	if (current < 0) {
		direct = op;
		if (op.kind == MC_OP_LOAD)
			direct.result = mem_get(op.p, op.size);
		else if (op.kind == MC_OP_STORE || op.kind == MC_OP_STORE_SC)
			mem_put(op.p, op.size, op.a);
		else
			op_rmw(&direct);
		return &direct;
	}
	t = &mc_world.thr[current];
	t->op = op;
	to_engine(t);
	return &t->op;
}

uint64_t mc_load(void *p, size_t size, int order, const char *what)
{
	struct mc_thr *t = current < 0 ? NULL : &mc_world.thr[current];

	if (is_ignored(p))
		return 0;
	if (t && t->loop == p && order == memory_order_acquire)
		t->history = mc_mix(-1, t->loop_local);
	return perform((struct mc_op){.kind = MC_OP_LOAD, .p = p, .size = size, .what = what})
		->result;
}

void mc_store(void *p, size_t size, uint64_t v, int order, const char *what)
{
	struct mc_op op = {.kind = MC_OP_STORE, .p = p, .size = size, .a = v, .what = what};

	if (is_ignored(p))
		return;
	op.release = order == memory_order_release;
	if (order == memory_order_seq_cst)
		op.kind = MC_OP_STORE_SC;
	/* A store into the buffer is seen by nobody else: no scheduling point. */
	else if (current >= 0 && mc_world.m->memory != MC_SC &&
		 mc_world.thr[current].n_buf < MC_BUFFER) {
		buf_push(&mc_world.thr[current], &op);
		return;
	}
	perform(op);
}

uint64_t mc_rmw(enum mc_op_kind kind, void *p, size_t size, uint64_t v, const char *what)
{
	uint64_t old;

	if (is_ignored(p))
		return 0;
	if (current >= 0 && kind == MC_OP_XCHG && is_weak(p)) {
		old = mc_load(p, size, memory_order_relaxed, what);
		mc_store(p, size, v, memory_order_relaxed, what);
		return old;
	}
	return perform((struct mc_op){.kind = kind, .p = p, .size = size, .a = v, .what = what})
		->result;
}

bool mc_cas(void *p, size_t size, uint64_t *expected, uint64_t desired, const char *what)
{
	struct mc_op *op = perform((struct mc_op){.kind = MC_OP_CAS,
		.p = p,
		.size = size,
		.a = *expected,
		.b = desired,
		.what = what});

	*expected = op->result;
	return op->ok;
}

void mc_fence(int order, const char *what)
{
	if (order == memory_order_seq_cst && current >= 0)
		perform((struct mc_op){.kind = MC_OP_FENCE, .what = what});
}

void mc_step(const char *what)
{
	perform((struct mc_op){.kind = MC_OP_STEP, .what = what});
}

void mc_wait_change(void *p, size_t size, uint64_t v)
{
	perform((struct mc_op){.kind = MC_OP_WAIT, .p = p, .size = size, .a = v, .what = "wait"});
}

int mc_choose(int n)
{
	return perform((struct mc_op){.kind = MC_OP_CHOOSE, .a = n, .what = "choose"})->result;
}

void mc_forget(uint32_t where, uint64_t local)
{
	struct mc_thr *t = &mc_world.thr[current];

	t->history = mc_mix(mc_mix(0, where), local); /* mc_mix(a, b) is mc_mix(b, a) */
	t->steps = 0;
}

void mc_loop_at(void *p, uint64_t local)
{
	struct mc_thr *t = &mc_world.thr[current];

	t->loop = p;
	t->loop_local = local;
}

int mc_self(void)
{
	return current;
}

void mc_fail(const char *message)
{
	if (!mc_world.failure)
		mc_world.failure = message;
}

bool mc_finished(int thread)
{
	return mc_world.thr[thread].status == MC_DONE;
}

int mc_stopped(void)
{
	return mc_world.stopped;
}

int mc_dead(void)
{
	return mc_world.dead;
}

const struct mc_model *mc_current_model(void)
{
	return mc_world.m;
}
