// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/journaled.h"

#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "hca/exec/carry.h"
#include "hca/exec/crash_journal.h"
#include "hca/exec/exec_agent.h"
#include "hca/exec/respond.h"
#include "hca/exec/word.h"

/* Is what comes into it, memory of the responder, noted? */
static bool is_covered(const struct payload *p, const struct held *held)
{
	return held_flagged(held, p->held_at, MR_JOURNALED);
}

static uint32_t pid_of(const struct view *v)
{
	return v->pid ? v->pid : getpid();
}

/* Of a request of this machine, which has a slot. */
static void describe_slot(const struct work *w, struct journal_record *r)
{
	const struct seg_wqe *slot = end_wqe(w->req, w->pos);

	r->fenced = !!(w->flags & IBV_SEND_FENCE);
	r->wr_id = slot->wr_id;
	r->opcode = slot->opcode;
	r->qpn = w->req->qpn;
	r->pos = w->pos;
	r->seen = slot->polled;
}

/* What all records of a request have in common. */
static struct journal_record describe(const struct work *w, enum journal_kind kind)
{
	struct journal_record r = {
		.kind = kind, .owner = pid_of(&w->mem->view), .target_qpn = w->resp->qpn};

	if (w->req) {
		describe_slot(w, &r);
	} else {
		r.opcode = w->asked->opcode;
		r.qpn = w->asked->from_qpn;
		r.pos = w->asked->psn;
	}
	journal_sign(&r, w->req ? pid_of(&w->req->view) : 0);
	return r;
}

static void tell_full(void)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set_explicit(&told, memory_order_relaxed))
		log_line(LOG_LVL_WARN,
			"the journal of the power-failure simulator has ended: it is full (give it "
			"more, weft crash run --size), or the power failed (weft crash now)");
}

/* ---- a write ---- */

/* Records of one write: one for each piece of its target. */
struct noted {
	struct journal_record *at[SGL_MAX];
	unsigned n;
};

static void note_pieces(
	struct work *w, struct journal *j, const struct sgl *to, uint64_t data, struct noted *noted)
{
	struct journal_record r = describe(w, JOURNAL_WRITE);

	noted->n = 0;
	for (unsigned i = to->at; i < to->n; i++) {
		r.addr = (uintptr_t)to->v[i].iov_base;
		r.len = r.data_len = to->v[i].iov_len;
		r.data = data;
		data += r.len;
		noted->at[noted->n] = journal_add(j, &r, JOURNAL_BEGUN);
		if (!noted->at[noted->n]) {
			tell_full();
			return;
		}
		noted->n++;
	}
}

static void settle(const struct noted *noted, enum journal_state state)
{
	for (unsigned i = 0; i < noted->n; i++)
		journal_settle(noted->at[i], state);
}

/*
 * The bytes lie in the journal: from there to where they go, with nobody else in between.  If
 * nothing was done, the room is given back.
 */
static enum move_result apply(struct work *w, struct journal *j, uint64_t data, uint64_t len,
	struct payload *dst, const struct held *held)
{
	uint64_t before = w->moved;
	struct noted noted;
	struct payload from;
	enum move_result moved;
	bool done;

	if (!word_lock(w->x, w->mem->view.seg)) {
		journal_unroom(j, data, len);
		return MOVE_BUSY;
	}
	note_pieces(w, j, &dst->l, data, &noted);
	payload_of_bytes(&from, journal_data(j, data), len);
	moved = carry(w, &from, dst, held);
	word_unlock(w->x, w->mem->view.seg);
	/* What got there in part is a write like another: any part of it may be lost. */
	done = moved == MOVE_OK || w->moved > before;
	settle(&noted, done ? JOURNAL_DONE : JOURNAL_VOID);
	if (!done)
		journal_unroom(j, data, len);
	return moved;
}

static enum move_result noted_move(
	struct work *w, struct payload *src, struct payload *dst, const struct held *held)
{
	uint64_t len = src->l.left, data;
	struct payload here;
	struct journal *j;
	enum move_result moved;

	if (crash_journal(&w->mem->view, &j))
		return MOVE_REFUSED;
	/* Whatever can be refused is refused before there is a record. */
	if (view_by_agent(&w->mem->view) && exec_agent_later(w))
		return MOVE_LATER;
	data = j ? journal_room(j, len) : 0;
	if (!data) {
		if (j)
			tell_full();
		return carry(w, src, dst, held);
	}
	payload_of_bytes(&here, journal_data(j, data), len);
	moved = carry(w, src, &here, held);
	if (moved == MOVE_OK)
		return apply(w, j, data, len, dst, held);
	journal_unroom(j, data, len);
	return moved;
}

enum move_result journaled_move(
	struct work *w, struct payload *src, struct payload *dst, const struct held *held)
{
	if (dst->way != &way_journaled) {
		src->way = src->under;
		return carry(w, src, dst, held);
	}
	dst->way = dst->under;
	return is_covered(dst, held) ? noted_move(w, src, dst, held) : carry(w, src, dst, held);
}

enum move_result journaled_store(
	struct work *w, struct payload *target, const struct held *held, uint64_t word)
{
	struct payload here;

	target->way = target->under;
	if (!is_covered(target, held))
		return target->way->store(w, target, held, word);
	payload_of_bytes(&here, &word, sizeof word);
	return noted_move(w, &here, target, held);
}

/* ---- an atomic ---- */

static void note_update(struct work *w, struct journal *j, const struct sgl *target, uint64_t after,
	struct noted *noted)
{
	uint64_t data = j ? journal_room(j, sizeof after) : 0;

	noted->n = 0;
	if (data) {
		memcpy(journal_data(j, data), &after, sizeof after);
		note_pieces(w, j, target, data, noted);
	} else if (j) {
		tell_full();
	}
}

/* Under the token; each list is used once. */
static enum move_result update(struct work *w, struct journal *j, struct payload *target,
	const struct held *held, uint64_t *before)
{
	struct payload from = *target, to;
	enum move_result moved;
	struct noted noted;
	uint64_t after;

	payload_of_bytes(&to, before, sizeof *before);
	moved = carry(w, &from, &to, held);
	if (moved != MOVE_OK)
		return moved;
	after = word_after(w, *before);
	note_update(w, j, &target->l, after, &noted);
	payload_of_bytes(&from, &after, sizeof after);
	moved = carry(w, &from, target, held);
	settle(&noted, moved == MOVE_OK ? JOURNAL_DONE : JOURNAL_VOID);
	return moved;
}

/* The agent takes the token itself, so the record comes after the update. */
static enum move_result update_by_agent(struct work *w, struct journal *j, struct payload *target,
	const struct held *held, uint64_t *before)
{
	struct move m = {.pid = w->mem->view.pid, .remote = &target->l};
	struct sgl where = target->l;
	enum move_result moved = exec_agent_atomic(w, &m, held, before);
	struct noted noted;

	if (moved != MOVE_OK)
		return moved;
	note_update(w, j, &where, word_after(w, *before), &noted);
	settle(&noted, JOURNAL_DONE);
	return moved;
}

enum move_result journaled_update(
	struct work *w, struct payload *target, const struct held *held, uint64_t *before)
{
	struct journal *j;
	enum move_result moved;

	target->way = target->under;
	if (!is_covered(target, held))
		return target->way->update(w, target, held, before);
	if (crash_journal(&w->mem->view, &j))
		return MOVE_REFUSED;
	if (view_by_agent(&w->mem->view))
		return update_by_agent(w, j, target, held, before);
	if (!word_lock(w->x, w->mem->view.seg))
		return MOVE_BUSY;
	moved = update(w, j, target, held, before);
	word_unlock(w->x, w->mem->view.seg);
	return moved;
}

/* ---- READs and FLUSHes ---- */

static enum journal_push push_kind(const struct work *w)
{
	if (w->op->kind == OP_READ)
		return JOURNAL_READ;
	return flush_types(w->flush) & IBV_FLUSH_PERSISTENT ? JOURNAL_FLUSH_PERSISTENT
							    : JOURNAL_FLUSH_VISIBLE;
}

/* The range of a READ or FLUSH, in the owner's memory: a region may have addresses of its own. */
static void fill_range(const struct work *w, struct journal_record *r)
{
	const struct seg_mr *mr = seg_mr_of(w->mem->view.seg, w->rkey);
	bool is_read = r->push == JOURNAL_READ, whole = !is_read && flush_is_whole(w->flush);

	if (atomic_load_explicit(&mr->key, memory_order_acquire) != w->rkey)
		return;
	r->addr = whole ? mr->addr : mr->addr + (w->raddr - mr->iova);
	r->len = whole ? mr->length : is_read ? w->length : w->range_len;
}

void journaled_pushed(struct work *w)
{
	struct journal_record r;
	struct journal *j;

	if (crash_journal(&w->mem->view, &j) || !j)
		return;
	r = describe(w, JOURNAL_PUSH);
	r.push = push_kind(w);
	fill_range(w, &r);
	if (!journal_add(j, &r, JOURNAL_DONE))
		tell_full();
}
