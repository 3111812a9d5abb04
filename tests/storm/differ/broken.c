// SPDX-License-Identifier: BSD-3-Clause
#include "broken.h"

#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "seen.h"
#include "tests/storm/world.h"

enum { WAITS_ONCE_IN = 4, NEVER = 0xffffffff };

/* ---- completions ---- */

/* Those of ours between that completed before, or will never be heard of, must have been silent. */
static bool may_be_next(const struct end *e, unsigned lane, unsigned poster, uint32_t index)
{
	const struct lane *l = &e->lane[lane];
	bool silent = l->failed_at[poster] == NEVER;

	for (uint32_t i = l->next_send[poster]; i < index; i++) {
		const struct request *q = &e->r.r[i];

		if (q->from == e->side && q->lane == lane && q->poster == poster &&
			(q->signaled || !silent))
			return false;
	}
	return index >= l->next_send[poster];
}

/* One request is retried until nobody hopes any more, and what was posted after it is flushed. */
static void failed_send(struct end *e, const struct ibv_wc *wc, unsigned lane)
{
	struct lane *l = &e->lane[lane];
	uint32_t index = (uint32_t)wc->wr_id;
	const struct request *q = &e->r.r[index];

	if (index >= e->r.n || q->from != e->side || q->lane != lane)
		compare_wrong(e, wc, lane, "send", -1, 0, "after a death: wr_id");
	if (!may_be_next(e, lane, q->poster, index))
		compare_wrong(e, wc, lane, "send", index, wc->status, "after a death: order");
	if (is_reliable(&e->e) && seen_by_other(e, index))
		compare_wrong(e, wc, lane, "send", index, IBV_WC_SUCCESS,
			"after a death: the other end had received it");
	if (wc->status == IBV_WC_RETRY_EXC_ERR && (l->failed || !is_reliable(&e->e)))
		compare_wrong(e, wc, lane, "send", index, IBV_WC_WR_FLUSH_ERR,
			"after a death: the second that is retried");
	if (wc->status == IBV_WC_WR_FLUSH_ERR && !l->failed && !e->wrecked && !e->e.fault)
		compare_wrong(e, wc, lane, "send", index, IBV_WC_RETRY_EXC_ERR,
			"after a death: nothing has failed yet");
	l->failed = true;
	if (l->failed_at[q->poster] == NEVER)
		l->failed_at[q->poster] = index;
	l->next_send[q->poster] = index + 1;
}

static void flushed_recv(struct end *e, const struct ibv_wc *wc, unsigned lane)
{
	struct lane *l = &e->lane[lane];
	unsigned slot = plan_first_slot(&e->r, e->side, lane) + l->recvs_done;

	if (e->srq)
		compare_wrong(e, wc, lane, "receive", -1, 0, "after a death: of a shared queue");
	if (wc->wr_id != (WR_RECV | (uint64_t)e->round << 32 | slot))
		compare_wrong(e, wc, lane, "receive", -1, wc->status, "after a death: wr_id");
	l->recv_failed = true;
	l->recvs_done++;
}

bool broken_completion(struct end *e, const struct ibv_wc *wc, unsigned lane, bool is_send)
{
	const struct lane *l = &e->lane[lane];

	if (!end_may_be_broken(e))
		return false;
	if (is_send && (wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_WR_FLUSH_ERR)) {
		failed_send(e, wc, lane);
		return true;
	}
	if (!is_send && wc->status == IBV_WC_WR_FLUSH_ERR) {
		flushed_recv(e, wc, lane);
		return true;
	}
	if (!wc->status && (is_send ? l->failed : l->recv_failed))
		compare_wrong(e, wc, lane, is_send ? "send" : "receive", -1, IBV_WC_WR_FLUSH_ERR,
			"after a death: a success after a failure");
	return false;
}

void broken_note_slot(struct end *e, unsigned slot)
{
	e->got[slot / 64] |= 1ull << slot % 64;
}

/* ---- waiting ---- */

static unsigned missing_sends(const struct end *e)
{
	unsigned n = 0;

	for (unsigned i = 0; i < POSTERS * e->e.lanes; i++) {
		unsigned lane = i / POSTERS, poster = i % POSTERS;
		uint32_t at = e->lane[lane].next_send[poster];

		n += compare_next_send(e, lane, poster, &at);
	}
	return n;
}

/* What is posted to a shared queue stays there. */
static unsigned missing_recvs(const struct end *e)
{
	unsigned n = 0;

	for (unsigned i = 0; !e->srq && e->wrecked && i < e->e.lanes; i++)
		n += e->lane[i].recvs_posted - e->lane[i].recvs_done;
	return n;
}

static void await_all(struct end *e)
{
	uint64_t since = now_ns();
	struct ibv_wc wc;
	unsigned idle = 0;
	bool is_send, any;

	while ((any = end_poll(e, &wc, &is_send)) || missing_sends(e) || missing_recvs(e)) {
		if (any) {
			compare_completion(e, &wc, is_send);
			idle = 0;
			since = now_ns();
			continue;
		}
		end_rest(e, idle++);
		if (idle % 256 == 0)
			compare_patience(e, since);
	}
}

/* ---- memory ---- */

/* Memory as it is, and room to find out what a request writes. */
struct broken {
	struct end *e;
	uint8_t *is, *zero, *one;
};

static bool is_word(enum op op)
{
	return op_is_atomic(op) || op == DO_ATOMIC_WRITE;
}

/* May have been carried out in part: each byte is the old or the new one.  A word is one. */
static void may_apply(struct broken *b, const struct request *q)
{
	struct end *e = b->e;

	if (q->common)
		return;
	/* Which bytes it writes shows where it is applied to two different ones. */
	memset(b->zero, 0, e->mem.len);
	memset(b->one, 0xff, e->mem.len);
	compare_apply_to(e, q, b->zero);
	compare_apply_to(e, q, b->one);
	if (q->from != e->side && is_word(q->op)) {
		if (!memcmp(b->is + q->remote, b->one + q->remote, q->len))
			memcpy(e->shadow + q->remote, b->is + q->remote, q->len);
		return;
	}
	for (size_t i = 0; i < e->mem.len; i++)
		if (b->zero[i] == b->one[i] && b->is[i] == b->zero[i])
			e->shadow[i] = b->is[i];
}

static void accept_found(struct broken *b, const struct request *q)
{
	if (q->common && q->from == b->e->side)
		memcpy(b->e->shadow + q->local.off[0], b->is + q->local.off[0], q->local.len[0]);
}

static void apply_ours(struct broken *b)
{
	struct end *e = b->e;

	for (unsigned i = 0; i < e->r.n; i++) {
		const struct request *q = &e->r.r[i];
		uint32_t failed = e->lane[q->lane].failed_at[q->poster];

		if (q->from != e->side || !compare_takes_place(e, i))
			continue;
		if (i < failed)
			compare_apply(e, q);
		else if (i == failed)
			may_apply(b, q);
		if (i == failed)
			accept_found(b, q);
	}
}

/* Does memory show that it was begun? */
static bool shows(struct broken *b, const struct request *q)
{
	bool writes = q->op == DO_WRITE || q->op == DO_WRITE_IMM || q->op == DO_ATOMIC_WRITE ||
		      (op_is_atomic(q->op) && !q->common);

	return writes && memcmp(b->is + q->remote, b->e->shadow + q->remote, q->len) != 0;
}

static bool is_theirs(const struct end *e, unsigned i, unsigned lane, unsigned poster)
{
	const struct request *q = &e->r.r[i];

	return q->from != e->side && q->lane == lane && q->poster == poster &&
	       compare_takes_place(e, i);
}

/*
 * What the dead end asked for, in one lane by one thread: the last that shows may be half done, all
 * before it are done, nothing after it is begun.  (UC: what was lost was not done.)
 */
static void apply_theirs(struct broken *b, unsigned lane, unsigned poster)
{
	struct end *e = b->e;
	uint32_t came = e->lane[lane].next_recv[poster], last = 0;

	for (unsigned i = 0; i < e->r.n; i++)
		if (is_theirs(e, i, lane, poster) &&
			((op_is_message(e->r.r[i].op) && i < came) || shows(b, &e->r.r[i])))
			last = i + 1;
	for (unsigned i = 0; i < last; i++) {
		if (!is_theirs(e, i, lane, poster))
			continue;
		if ((op_is_message(e->r.r[i].op) && i < came) ||
			(is_reliable(&e->e) && i + 1 < last))
			compare_apply(e, &e->r.r[i]);
		else
			may_apply(b, &e->r.r[i]);
	}
}

/* Could the bytes of the receive be of that message, in part? */
static bool is_part_of(
	struct broken *b, const struct pieces *p, const struct request *q, const uint8_t *bytes)
{
	unsigned at = 0, skip = b->e->e.type == IBV_QPT_UD ? GRH : 0;

	for (unsigned i = 0; i < p->n; i++)
		for (unsigned k = 0; k < p->len[i]; k++, at++) {
			uint32_t off = p->off[i] + k;
			bool of_message = at < skip + q->len;

			if (b->is[off] == b->e->shadow[off] || at < skip)
				continue;
			if (!of_message || b->is[off] != bytes[at - skip])
				return false;
		}
	return true;
}

static bool was_changed(const struct broken *b, const struct pieces *p)
{
	for (unsigned i = 0; i < p->n; i++)
		if (memcmp(b->is + p->off[i], b->e->shadow + p->off[i], p->len[i]))
			return true;
	return false;
}

/* Is that receive one into which the next message of a lane was being written?  Then it is so. */
static bool accept_part(struct broken *b, const struct pieces *p, unsigned lane)
{
	struct end *e = b->e;
	bool fits = false;

	for (unsigned poster = 0; poster < POSTERS && !fits; poster++) {
		uint32_t at = e->lane[lane].next_recv[poster];
		uint8_t *bytes;

		if (!compare_next_recv(e, lane, poster, &at) || e->r.r[at].op == DO_WRITE_IMM)
			continue;
		bytes = compare_bytes(e, &e->r.r[at]);
		fits = is_part_of(b, p, &e->r.r[at], bytes);
		free(bytes);
	}
	for (unsigned i = 0; fits && i < p->n; i++)
		memcpy(e->shadow + p->off[i], b->is + p->off[i], p->len[i]);
	return fits;
}

/*
 * A lane writes into one receive at a time: the next one, or any of a shared queue, to which it
 * goes back when its requester dies in the middle.
 */
static void accept_parts(struct broken *b)
{
	struct end *e = b->e;
	unsigned n = e->r.recvs[e->side][0] + e->r.recvs[e->side][1];

	for (unsigned lane = 0; lane < e->e.lanes; lane++) {
		unsigned first = plan_first_slot(&e->r, e->side, lane) + e->lane[lane].recvs_good;
		bool taken = false;

		for (unsigned slot = e->srq ? 0 : first; slot < n && !taken; slot++) {
			struct pieces p = plan_receive(&e->r, e->side, slot);

			if (!(e->got[slot / 64] >> slot % 64 & 1) && was_changed(b, &p))
				taken = accept_part(b, &p, lane);
			if (!e->srq)
				break;
		}
	}
}

static void *memory_of(struct end *e)
{
	void *p = malloc(e->mem.len);

	if (!p)
		end_fail(e, "no memory");
	return p;
}

static void apply_all(struct end *e)
{
	struct broken b = {.e = e, .is = memory_of(e), .zero = memory_of(e), .one = memory_of(e)};

	memory_get(&e->mem, 0, b.is, e->mem.len);
	apply_ours(&b);
	for (unsigned i = 0; i < POSTERS * e->e.lanes; i++)
		apply_theirs(&b, i / POSTERS, i % POSTERS);
	accept_parts(&b);
	free(b.is);
	free(b.zero);
	free(b.one);
}

void broken_check(struct end *e)
{
	if (words_rounds(e->link, !e->side) == e->peer_rounds)
		for (unsigned i = 0; i < WORDS; i++)
			words_unknown(i, e->peer_asked[i]);
	memset(e->peer_asked, 0, sizeof e->peer_asked);
	if (e->begun) {
		end_does(e, "waits for completions after the other end's death");
		if (is_reliable(&e->e) && rnd_once_in(&e->rnd, WAITS_ONCE_IN))
			await_all(e);
		end_does(e, "waits for what is flushed after the other end's death");
		end_wreck(e);
		await_all(e);
		apply_all(e);
	}
	end_does(e, "compares after the other end's death");
	compare_shadow(e);
}
