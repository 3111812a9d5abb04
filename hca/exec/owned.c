// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/owned.h"

#include "hca/exec/carry.h"
#include "hca/exec/exec_agent.h"
#include "hca/exec/word.h"
#include "pages/copy.h"

/* Of the buffer through which the bytes go, on a stack of which the functions want some, too. */
enum {
	STEP_BYTES = 32 * 1024,
	CALL_BYTES = 1 << 20, /* where they need none: of a call, after which it is looked whether
				 to go on */
	WORD = 8,
};

/* The region of a piece: a window stands before the one under it. */
static const struct held_mr *region_of(
	const struct payload *p, const struct held *held, unsigned piece)
{
	unsigned i = p->held_at;

	for (; i < held->n; i++)
		if (held->mr[i].share != HELD_NO_PAGES && !piece--)
			break;
	return i < held->n ? &held->mr[i] : NULL;
}

/* May this thread call the functions of all of p? */
static bool may_call(const struct work *w, const struct payload *p, const struct held *held)
{
	bool may = true;

	for (unsigned i = p->l.at; i < p->l.n && may && !w->x->is_worker; i++) {
		const struct held_mr *mr = region_of(p, held, i);

		may = !mr || w->x->owned->anywhere(mr->key);
	}
	return may;
}

bool owned_later(struct work *w, const struct payload *p, const struct held *held)
{
	if (may_call(w, p, held))
		return false;
	w->for_worker = true;
	return true;
}

/* The same for both ends of a transfer, as far as they are this process's. */
static bool any_later(struct work *w, const struct payload *src, const struct payload *dst,
	const struct held *held)
{
	return (src->way == &way_functions && owned_later(w, src, held)) ||
	       (dst->way == &way_functions && owned_later(w, dst, held));
}

/* Where the functions say no, the memory is not there. */
static enum move_result fault(const struct work *w, const struct payload *p)
{
	if (!w->req)
		return MOVE_FAULT_LOCAL;
	return (p->at == w->req) == end_is_here(w->req) ? MOVE_FAULT_LOCAL : MOVE_FAULT_REMOTE;
}

/* n bytes of p's first piece, to or from buf.  (Others of its pieces may be plain memory.) */
static enum move_result piece(struct work *w, struct payload *p, const struct held *held,
	uint8_t *buf, uint64_t n, bool in)
{
	void *at = p->l.v[p->l.at].iov_base;
	const struct held_mr *mr = region_of(p, held, p->l.at);
	int rc = 0;

	if (!mr)
		return fault(w, p);
	if (!(mr->mr->flags & MR_OWNED))
		copy_ordered(in ? buf : at, in ? at : buf, n);
	else if (in)
		rc = w->x->owned->read(mr->key, (uintptr_t)at, buf, n);
	else
		rc = w->x->owned->write(mr->key, (uintptr_t)at, buf, n);
	return rc ? fault(w, p) : MOVE_OK;
}

/* The next n bytes of p, which is consumed, to or from buf. */
static enum move_result pieces(struct work *w, struct payload *p, const struct held *held,
	uint8_t *buf, uint64_t n, bool in)
{
	enum move_result r = MOVE_OK;

	while (n && r == MOVE_OK) {
		uint64_t left = p->l.v[p->l.at].iov_len, step = left < n ? left : n;

		r = piece(w, p, held, buf, step, in);
		sgl_consume(&p->l, step);
		buf += step;
		n -= step;
	}
	return r;
}

enum move_result owned_gather(
	struct work *w, struct payload *p, const struct held *held, uint8_t *to)
{
	return pieces(w, p, held, to, p->l.left, true);
}

/* The same for the other end of a transfer, whichever way leads there. */
static enum move_result by_its_way(struct work *w, struct payload *p, const struct held *held,
	uint8_t *buf, uint64_t n, bool in)
{
	struct payload part = *p, here;
	enum move_result r;

	sgl_head(&p->l, n, &part.l);
	/* (Where it is mapped, pieces were cut, and nobody asks for their regions.) */
	if (!way_beneath(p)->here)
		part.held_at += p->l.at;
	payload_of_bytes(&here, buf, n);
	r = in ? carry(w, &part, &here, held) : carry(w, &here, &part, held);
	sgl_consume(&p->l, n);
	return r;
}

static enum move_result step(struct work *w, struct payload *p, const struct held *held,
	uint8_t *buf, uint64_t n, bool in)
{
	return (p->way == &way_functions ? pieces : by_its_way)(w, p, held, buf, n, in);
}

/* Between two steps. */
static enum move_result goes_on(struct work *w, const struct held *held)
{
	if (!w->shared)
		work_step(w);
	return carry_goes_on(w, held);
}

/* ---- the other end is at addresses of ours: no buffer ---- */

/* How much of the next piece to take at once: of what a program may watch, the last word alone. */
static uint64_t call_bytes(const struct work *w, const struct payload *p, bool in)
{
	const struct iovec *v = &p->l.v[p->l.at];
	uint64_t n = v->iov_len < CALL_BYTES ? v->iov_len : CALL_BYTES;
	uint64_t word = 1 + ((uintptr_t)v->iov_base + n - 1) % WORD;

	return !in && n == p->l.left && n > word && w->op->kind == OP_WRITE ? n - word : n;
}

static enum move_result to_and_from_here(
	struct work *w, struct payload *p, struct payload *here, const struct held *held, bool in)
{
	enum move_result r = MOVE_OK;

	while (p->l.left && r == MOVE_OK) {
		const struct iovec *v = &here->l.v[here->l.at];
		uint64_t n = call_bytes(w, p, in);

		n = n < v->iov_len ? n : v->iov_len;
		r = piece(w, p, held, v->iov_base, n, in);
		w->moved += n;
		sgl_consume(&p->l, n);
		sgl_consume(&here->l, n);
		if (r == MOVE_OK && p->l.left)
			r = goes_on(w, held);
	}
	return r;
}

/* ... which may be memory of another process. */
static enum move_result move_direct(
	struct work *w, struct payload *p, struct payload *here, const struct held *held, bool in)
{
	enum move_result r;

	if (here->way->shared && !carry_alive(w, &here->at->view))
		return MOVE_GONE;
	r = to_and_from_here(w, p, here, held, in);
	return r == MOVE_OK && here->way->shared ? carry_arrived(w, held) : r;
}

/* ---- handing over ---- */

/* Are bytes of the requester's reached by functions of his alone, too? */
static bool has_own_functions(const struct work *w)
{
	if (atomic_load_explicit(&w->req->qp->parked_copy, memory_order_relaxed) == w->pos + 1)
		return false;
	for (unsigned i = 0; i < w->num_sge && !w->inline_data; i++) {
		const struct seg_sge s = w->sge[i];

		if (s.length && seg_mr_of(w->req->view.seg, s.lkey)->flags & MR_OWNED)
			return true;
	}
	return false;
}

/*
 * May the owner's agent run the queue, as a responder that helps does?  It reaches what is mapped,
 * inline, or allowed to it by the kernel: if it came back once, a lane does the rest.
 */
static bool can_hand_over(const struct work *w)
{
	return exec_agent_later(w) && end_is_here(w->req) && w->req->type != IBV_QPT_XRC_SEND &&
	       !w->mem->rxq.matches_tags && /* which takes a message apart */
	       !atomic_load_explicit(&w->req->qp->alone, memory_order_relaxed);
}

/* ---- the row for this process's own ---- */

static enum move_result move_by_steps(
	struct work *w, struct payload *src, struct payload *dst, const struct held *held)
{
	uint8_t buf[STEP_BYTES];

	while (src->l.left) {
		uint64_t n = src->l.left < STEP_BYTES ? src->l.left : STEP_BYTES;
		enum move_result r = step(w, src, held, buf, n, true);

		if (r == MOVE_OK)
			r = step(w, dst, held, buf, n, false);
		if (r != MOVE_OK)
			return r;
		w->moved += n;
		r = src->l.left ? goes_on(w, held) : MOVE_OK;
		if (r != MOVE_OK)
			return r;
	}
	return MOVE_OK;
}

/* No lane leads there: a shared receive queue of another process behind a target of our own. */
static bool is_out_of_reach(const struct work *w)
{
	return end_is_here(w->req) && end_is_here(w->resp);
}

/* Of bytes that go to another process, or come from one, by its agent. */
struct far {
	struct work *w;
	struct payload *p;
	const struct held *held;
};

static enum move_result copy_own(void *arg, uint8_t *buf, uint64_t n, bool in)
{
	struct far *f = arg;

	return pieces(f->w, f->p, f->held, buf, n, in);
}

/* Both copy at once, each between its functions and the buffer that is the other's no more. */
static enum move_result move_by_agent(struct work *w, struct payload *own, struct payload *other,
	const struct held *held, bool push)
{
	struct far f = {.w = w, .p = own, .held = held};
	const struct sgl_io io = {.copy = copy_own, .arg = &f};

	if (is_out_of_reach(w))
		return MOVE_REFUSED;
	return carry_agent_io(w, &io, other, push, held);
}

static bool is_by_agent(const struct payload *p)
{
	return p->way == &way_owner || p->way == &way_agent;
}

/*
 * A short source that goes to what only its owner reaches: read first, and then handed over like
 * inline data.
 */
static enum move_result park_source(struct work *w, struct payload *src, const struct held *held)
{
	enum move_result r = owned_gather(w, src, held, w->req->park_buf);

	if (r != MOVE_OK)
		return r;
	atomic_store_explicit(&w->req->qp->parked_copy, w->pos + 1, memory_order_release);
	w->for_owner = true;
	return MOVE_LATER;
}

enum move_result owned_move(
	struct work *w, struct payload *src, struct payload *dst, const struct held *held)
{
	if (any_later(w, src, dst, held))
		return MOVE_LATER;
	if (dst->way == &way_owner && w->length <= SEG_PARK_BYTES && can_hand_over(w))
		return park_source(w, src, held);
	if (way_is_later(w, src, held) || way_is_later(w, dst, held))
		return MOVE_LATER;
	if (dst->way->here)
		return move_direct(w, src, dst, held, true);
	if (src->way->here)
		return move_direct(w, dst, src, held, false);
	if (is_by_agent(dst))
		return move_by_agent(w, src, dst, held, true);
	if (is_by_agent(src))
		return move_by_agent(w, dst, src, held, false);
	return move_by_steps(w, src, dst, held);
}

enum move_result owned_update(
	struct work *w, struct payload *target, const struct held *held, uint64_t *before)
{
	const struct held_mr *mr = region_of(target, held, 0);
	int rc;

	if (owned_later(w, target, held))
		return MOVE_LATER;
	if (!mr)
		return fault(w, target);
	if (!word_lock(w->x, w->mem->view.seg))
		return MOVE_BUSY;
	rc = w->x->owned->update(mr->key, (uintptr_t)target->l.v[0].iov_base, w->fetch_add,
		w->compare_add, w->swap, before);
	word_unlock(w->x, w->mem->view.seg);
	return rc ? fault(w, target) : MOVE_OK;
}

enum move_result owned_store(
	struct work *w, struct payload *target, const struct held *held, uint64_t word)
{
	enum move_result r;

	if (owned_later(w, target, held))
		return MOVE_LATER;
	if (!word_lock(w->x, w->mem->view.seg))
		return MOVE_BUSY;
	r = pieces(w, target, held, (uint8_t *)&word, sizeof word, false);
	word_unlock(w->x, w->mem->view.seg);
	return r;
}

enum move_result owned_persist(
	struct work *w, struct payload *range, const struct held *held, enum durability kind)
{
	(void)w;
	(void)range;
	(void)held;
	(void)kind; /* it is volatile, whatever a peer wrote into its entry */
	return MOVE_OK;
}

/* ---- that of another process ---- */

bool owner_later(struct work *w, const struct payload *p, const struct held *held)
{
	(void)p;
	(void)held; /* nobody of this process can */
	if (!exec_agent_later(w) || is_out_of_reach(w))
		return false;
	if (can_hand_over(w) && !has_own_functions(w))
		w->for_owner = true;
	else
		exec_agent_lane(w);
	return true;
}

enum move_result owner_move(
	struct work *w, struct payload *src, struct payload *dst, const struct held *held)
{
	if (is_out_of_reach(w))
		return MOVE_REFUSED;
	return owner_later(w, dst, held) ? MOVE_LATER : carry_agent(w, src, dst, held);
}

enum move_result owner_update(
	struct work *w, struct payload *target, const struct held *held, uint64_t *before)
{
	if (is_out_of_reach(w))
		return MOVE_REFUSED;
	return owner_later(w, target, held) ? MOVE_LATER
					    : word_update_agent(w, target, held, before);
}

enum move_result owner_store(
	struct work *w, struct payload *target, const struct held *held, uint64_t word)
{
	struct payload here;

	payload_of_bytes(&here, &word, sizeof word);
	return carry(w, &here, target, held);
}
