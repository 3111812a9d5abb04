// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/atomic_op.h"

#include "hca/exec/carry.h"
#include "hca/seg/token.h"

enum { SPINS = 2000 };

/* Unlike a queue's token this one takes no kicks: it is always given back within one update. */
static bool try_take(_Atomic uint64_t *tok, uint64_t owner)
{
	uint64_t v = atomic_load_explicit(tok, memory_order_relaxed);

	if (v & TOKEN_OWNER_MASK)
		return false;
	return atomic_compare_exchange_strong_explicit(
		tok, &v, v | owner, memory_order_acquire, memory_order_relaxed);
}

bool atomic_op_begin(struct exec *x, struct seg *target)
{
	for (int i = 0; i < SPINS; i++) {
		if (try_take(&target->hdr.atomic_token, x->owner))
			return true;
		cpu_relax();
	}
	return false;
}

void atomic_op_end(struct exec *x, struct seg *target)
{
	token_drop(&target->hdr.atomic_token, x->owner);
}

static uint64_t updated(const struct work *w, uint64_t old)
{
	if (w->fetch_add)
		return old + w->compare_add;
	return old == w->compare_add ? w->swap : old;
}

uint64_t atomic_op_mapped(const struct work *w, _Atomic uint64_t *word)
{
	uint64_t old = w->compare_add;

	if (w->fetch_add)
		return atomic_fetch_add_explicit(word, w->compare_add, memory_order_seq_cst);
	atomic_compare_exchange_strong_explicit(
		word, &old, w->swap, memory_order_seq_cst, memory_order_relaxed);
	return old;
}

/* One 8-byte transfer between a local variable and the responder's memory. */
static enum move_result word_move(struct work *w, uint64_t va, uint64_t *here, bool push)
{
	struct sgl local, remote;
	struct move m = {.pid = w->mem->view.pid, .push = push, .local = &local, .remote = &remote};
	enum move_result r;

	sgl_reset(&local);
	sgl_reset(&remote);
	sgl_add(&local, (uintptr_t)here, sizeof *here);
	sgl_add(&remote, va, sizeof *here);
	r = mover_run(&m);
	count_add(w->x, CTR_CMA_OPS, m.calls);
	return r;
}

enum move_result atomic_op_apply(struct work *w, uint64_t va, uint64_t *before)
{
	enum move_result r;
	uint64_t after;

	if (!w->mem->view.pid) {
		_Atomic uint64_t *word = (_Atomic uint64_t *)(uintptr_t)va;

		*before = atomic_load_explicit(word, memory_order_acquire);
		atomic_store_explicit(word, updated(w, *before), memory_order_release);
		return MOVE_OK;
	}
	if (!work_pid_valid(w, &w->mem->view))
		return MOVE_GONE;
	r = word_move(w, va, before, false);
	if (r != MOVE_OK)
		return r;
	after = updated(w, *before);
	return after == *before ? MOVE_OK : word_move(w, va, &after, true);
}

enum move_result atomic_op_write(struct work *w, uint64_t va, uint64_t word)
{
	if (!w->mem->view.pid) {
		_Atomic uint64_t *target = (_Atomic uint64_t *)(uintptr_t)va;

		atomic_store_explicit(target, word, memory_order_seq_cst);
		return MOVE_OK;
	}
	if (!work_pid_valid(w, &w->mem->view))
		return MOVE_GONE;
	return word_move(w, va, &word, true);
}
