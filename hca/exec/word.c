// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/word.h"

#include "hca/exec/carry.h"
#include "hca/exec/exec_agent.h"
#include "hca/exec/view_backing.h"
#include "hca/seg/token.h"

enum { SPINS = 2000 };

/* ---- the token ---- */

/* Unlike a queue's token this one takes no kicks: it is always given back within one update. */
static bool try_take(_Atomic uint64_t *tok, uint64_t owner)
{
	uint64_t v = atomic_load_explicit(tok, memory_order_relaxed);

	if (v & TOKEN_OWNER_MASK)
		return false;
	return atomic_compare_exchange_strong_explicit(
		tok, &v, v | owner, memory_order_acquire, memory_order_relaxed);
}

bool word_lock(struct exec *x, struct seg *target)
{
	for (int i = 0; i < SPINS; i++) {
		if (try_take(&target->hdr.atomic_token, x->owner))
			return true;
		cpu_relax();
	}
	return false;
}

void word_unlock(struct exec *x, struct seg *target)
{
	token_drop(&target->hdr.atomic_token, x->owner);
}

uint64_t word_after(const struct work *w, uint64_t old)
{
	if (w->fetch_add)
		return old + w->compare_add;
	return old == w->compare_add ? w->swap : old;
}

/* ---- memory that everybody reaches by the CPU's own atomics ---- */

/* Is the region that was resolved last reached so? */
static bool is_mapped(const struct held *held)
{
	return share_is_mapped(held->mr[held->n - 1].share);
}

/* Such a word, as it lies here; NULL: a CPU's atomics do not take it. */
static _Atomic uint64_t *mapped_word(struct work *w, const struct payload *target)
{
	_Atomic uint64_t *word = target->l.v[0].iov_base;

	if ((uintptr_t)word % sizeof *word)
		return NULL;
	count_add(w->x, CTR_MAP_ATOMICS, 1);
	return word;
}

/* Such a word that cannot be reached from here, for good or while weftd is not there. */
static enum move_result unreached(struct work *w, const struct held *held)
{
	if (held->mr[held->n - 1].share != MR_BACKED || !view_backing_later(&w->mem->view))
		return MOVE_REFUSED;
	return carry_alive(w, &w->mem->view) ? MOVE_BUSY : MOVE_GONE;
}

static uint64_t apply(const struct work *w, _Atomic uint64_t *word)
{
	uint64_t old = w->compare_add;

	if (w->fetch_add)
		return atomic_fetch_add_explicit(word, w->compare_add, memory_order_seq_cst);
	atomic_compare_exchange_strong_explicit(
		word, &old, w->swap, memory_order_seq_cst, memory_order_relaxed);
	return old;
}

enum move_result word_update_shared(
	struct work *w, struct payload *target, const struct held *held, uint64_t *before)
{
	_Atomic uint64_t *word;

	if (target->way->shared && !carry_alive(w, &target->at->view))
		return MOVE_GONE;
	word = mapped_word(w, target);
	if (!word)
		return MOVE_REFUSED;
	*before = apply(w, word);
	return carry_arrived(w, held);
}

enum move_result word_store_shared(
	struct work *w, struct payload *target, const struct held *held, uint64_t word)
{
	_Atomic uint64_t *there;

	if (target->way->shared && !carry_alive(w, &target->at->view))
		return MOVE_GONE;
	there = mapped_word(w, target);
	if (!there)
		return MOVE_REFUSED;
	atomic_store_explicit(there, word, memory_order_seq_cst);
	return carry_arrived(w, held);
}

/* ---- our own that nobody maps ---- */

enum move_result word_update_here(
	struct work *w, struct payload *target, const struct held *held, uint64_t *before)
{
	_Atomic uint64_t *word = target->l.v[0].iov_base;

	if (is_mapped(held))
		return word_update_shared(w, target, held, before);
	if (!word_lock(w->x, w->mem->view.seg))
		return MOVE_BUSY;
	*before = atomic_load_explicit(word, memory_order_acquire);
	atomic_store_explicit(word, word_after(w, *before), memory_order_release);
	word_unlock(w->x, w->mem->view.seg);
	return MOVE_OK;
}

enum move_result word_store_here(
	struct work *w, struct payload *target, const struct held *held, uint64_t word)
{
	if (is_mapped(held))
		return word_store_shared(w, target, held, word);
	if (!word_lock(w->x, w->mem->view.seg))
		return MOVE_BUSY;
	atomic_store_explicit(
		(_Atomic uint64_t *)target->l.v[0].iov_base, word, memory_order_seq_cst);
	word_unlock(w->x, w->mem->view.seg);
	return MOVE_OK;
}

/* ---- that of others, by calls ---- */

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

/* To be called before the token is taken. */
static enum move_result begin_cma(struct work *w, const struct held *held)
{
	enum move_result r;

	if (is_mapped(held))
		return unreached(w, held);
	r = carry_by_call(w, held);
	if (r != MOVE_OK)
		return r;
	return word_lock(w->x, w->mem->view.seg) ? MOVE_OK : MOVE_BUSY;
}

static enum move_result end_cma(struct work *w, enum move_result r)
{
	word_unlock(w->x, w->mem->view.seg);
	return r == MOVE_REFUSED && exec_agent_refused(&w->mem->view) ? MOVE_LATER : r;
}

static enum move_result update_cma(struct work *w, uint64_t va, uint64_t *before)
{
	enum move_result r;
	uint64_t after;

	if (!work_pid_valid(w, &w->mem->view))
		return MOVE_GONE;
	r = word_move(w, va, before, false);
	if (r != MOVE_OK)
		return r;
	after = word_after(w, *before);
	return after == *before ? MOVE_OK : word_move(w, va, &after, true);
}

enum move_result word_update_cma(
	struct work *w, struct payload *target, const struct held *held, uint64_t *before)
{
	enum move_result r = begin_cma(w, held);

	if (r != MOVE_OK)
		return r;
	return end_cma(w, update_cma(w, (uintptr_t)target->l.v[0].iov_base, before));
}

enum move_result word_store_cma(
	struct work *w, struct payload *target, const struct held *held, uint64_t word)
{
	enum move_result r = begin_cma(w, held);

	if (r != MOVE_OK)
		return r;
	r = !work_pid_valid(w, &w->mem->view)
		    ? MOVE_GONE
		    : word_move(w, (uintptr_t)target->l.v[0].iov_base, &word, true);
	return end_cma(w, r);
}

/* ---- by their agent, which takes the token itself ---- */

enum move_result word_update_agent(
	struct work *w, struct payload *target, const struct held *held, uint64_t *before)
{
	struct move m = {.pid = w->mem->view.pid, .remote = &target->l};

	return is_mapped(held) ? unreached(w, held) : exec_agent_atomic(w, &m, held, before);
}

enum move_result word_store_agent(
	struct work *w, struct payload *target, const struct held *held, uint64_t word)
{
	struct payload here;

	if (is_mapped(held))
		return unreached(w, held);
	payload_of_bytes(&here, &word, sizeof word);
	return carry(w, &here, target, held);
}
