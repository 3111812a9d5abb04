// SPDX-License-Identifier: BSD-3-Clause
#include "hca/queue/tm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/api/hca.h"
#include "hca/obj/pd.h"
#include "hca/proc/proc.h"
#include "hca/proc/tables.h"
#include "hca/queue/cq.h"
#include "hca/queue/own_rxq.h"
#include "hca/queue/srq.h"
#include "hca/seg/tm_list.h"

enum { SYNC_DUE = 0x3fff }; /* unexpected messages that a program may be behind before it is told */

/* An operation that waits to be polled. */
struct tm_op {
	uint64_t wr_id;
	uint8_t opcode; /* enum ibv_wc_opcode */
	uint8_t status;
	uint8_t wc_flags;
};

struct hca_tm {
	struct end me;
	struct hca_rxq tags; /* its lock is that of all below */
	struct hca_srq *srq;
	uint32_t n_apart; /* receives that are not matched yet */
	uint32_t synced;  /* unexpected messages that the program has dealt with, it says */
	uint32_t given;   /* ... that it was given */
	uint32_t ops_done, ops_taken, max_ops;
	struct tm_op op[]; /* a ring */
};

/* ---- creation ---- */

static void describe(struct seg_qp *s, const struct hca_srq *srq, uint32_t number,
	const struct seg_rxq_place *place)
{
	uint32_t gen = atomic_load_explicit(&s->state, memory_order_relaxed) >> QPS_GEN_SHIFT;

	memset((char *)s + sizeof s->state, 0, sizeof *s - sizeof s->state);
	s->qpn = number;
	s->pd = srq->pd->handle;
	s->type = SEG_TYPE_TM_LIST;
	s->send_cq = SEG_NONE;
	s->recv_cq = srq->cq->index;
	s->rq_log = 0xff;
	s->stamps = srq->cq->stamps ? STAMP_RECV : 0;
	s->rxq.place[0] = *place;
	s->rxq.stride = rxq_stride_for(HCA_MAX_SGE);
	atomic_store_explicit(&s->state, (gen + 1) << QPS_GEN_SHIFT | QPS_LIVE | IBV_QPS_RESET,
		memory_order_release);
}

static int build(struct hca_tm *tm, uint32_t tags)
{
	const struct view v = proc_view();
	struct seg_rxq_place place;
	uint32_t number;
	int index, rc = own_rxq_alloc(&place, tags, HCA_MAX_SGE);

	if (rc)
		return rc;
	index = table_add_srq(tm->srq, &number);
	if (index < 0) {
		own_rxq_give_back(&place, HCA_MAX_SGE);
		return index;
	}
	describe(&v.seg->qp[index], tm->srq, number, &place);
	rc = end_init(&tm->me, &v, index);
	if (rc) {
		atomic_store_explicit(&v.seg->qp[index].state, 0, memory_order_release);
		table_del_qp(index);
		own_rxq_give_back(&place, HCA_MAX_SGE);
		return rc;
	}
	own_rxq_init(&tm->tags, &tm->me.rxq, tags, HCA_MAX_SGE);
	return 0;
}

int tm_create(struct hca_srq *srq, const struct ibv_tm_cap *cap, struct hca_tm **out)
{
	struct hca_tm *tm = calloc(1, sizeof *tm + cap->max_ops * sizeof *tm->op);
	int rc;

	if (!tm)
		return -ENOMEM;
	tm->srq = srq;
	tm->max_ops = cap->max_ops;
	rc = build(tm, cap->max_num_tags);
	if (rc) {
		free(tm);
		return rc;
	}
	*out = tm;
	return 0;
}

void tm_close(struct hca_tm *tm)
{
	atomic_store_explicit(
		&tm->me.qp->state, (end_gen(&tm->me) + 1) << QPS_GEN_SHIFT, memory_order_seq_cst);
}

void tm_free(struct hca_tm *tm, struct hca_cq *cq)
{
	cq_purge(cq, tm->me.index);
	table_del_qp(tm->me.index);
	own_rxq_free(&tm->tags);
	free(tm);
}

uint32_t tm_index(const struct hca_tm *tm)
{
	return tm->me.index;
}

struct hca_rxq *tm_rxq(struct hca_tm *tm)
{
	return &tm->tags;
}

/* ---- unexpected messages ---- */

/* Programs count in 16 bits or more. */
static bool in_sync(const struct hca_tm *tm, uint64_t word)
{
	return (uint16_t)(word / TM_UNEXPECTED_ONE) == (uint16_t)tm->synced;
}

static bool untagged_in_use(const struct hca_srq *srq)
{
	for (uint32_t i = 0; i <= srq->rxq.ref.ring.mask; i++) {
		uint64_t s =
			atomic_load_explicit(rxq_slot(&srq->rxq.ref.ring, i), memory_order_seq_cst);

		if (rxq_state_of(s) == RXQ_TAKEN || rxq_state_of(s) == RXQ_DONE)
			return true;
	}
	return false;
}

/*
 * A sender that dies between counting its message and completing it leaves the count too high for
 * ever.  If the program has dealt with all that it was given and nothing is under way, it was so.
 */
static void correct_count(struct hca_tm *tm)
{
	uint64_t word = tm_word(&tm->tags.ref), right;

	if (in_sync(tm, word) || (uint16_t)tm->synced != (uint16_t)tm->given)
		return;
	lock_take(&tm->srq->rxq.lock); /* its ring does not move now */
	right = (uint64_t)tm->given * TM_UNEXPECTED_ONE | (uint32_t)(word + 1);
	if (!untagged_in_use(tm->srq))
		atomic_compare_exchange_strong_explicit(tm->tags.ref.ring.head, &word, right,
			memory_order_seq_cst, memory_order_relaxed);
	lock_drop(&tm->srq->rxq.lock);
}

/* All receives that are apart in one way are so in the other. */
static void set_apart(struct hca_tm *tm, uint32_t from, uint32_t to, uint32_t version)
{
	for (uint32_t i = 0; i <= tm->tags.ref.ring.mask; i++) {
		struct seg_rxq_slot *s = rxq_at(&tm->tags.ref, i);

		if (atomic_load_explicit(&s->apart, memory_order_relaxed) != from)
			continue;
		if (to == TM_JOINS)
			atomic_store_explicit(&s->since, version, memory_order_relaxed);
		atomic_store_explicit(&s->apart, to, memory_order_release);
	}
}

/* With the lock held: the program says how many it has dealt with. */
static void synchronise(struct hca_tm *tm, uint32_t count)
{
	uint64_t word;

	tm->synced = count;
	correct_count(tm);
	word = tm_word(&tm->tags.ref);
	while (tm->n_apart && in_sync(tm, word)) {
		bool joined;

		/* Not listed before the version moves on, which fails if one was counted. */
		set_apart(tm, TM_APART, TM_JOINS, word);
		joined = tm_step(&tm->tags.ref, &word);
		set_apart(tm, TM_JOINS, joined ? 0 : TM_APART, word);
		if (joined)
			tm->n_apart = 0;
	}
}

void tm_note_unexpected(struct hca_tm *tm, unsigned *wc_flags)
{
	lock_take(&tm->tags.lock);
	tm->given++;
	if ((uint16_t)(tm->given - tm->synced) > SYNC_DUE)
		*wc_flags |= IBV_WC_TM_SYNC_REQ;
	lock_drop(&tm->tags.lock);
}

/* ---- operations ---- */

static void list_receive(struct hca_tm *tm, struct seg_rxq_slot *s, uint32_t pos)
{
	uint64_t word = tm_word(&tm->tags.ref);
	bool apart;

	do {
		apart = !in_sync(tm, word);
		atomic_store_explicit(&s->since, (uint32_t)word, memory_order_relaxed);
		atomic_store_explicit(&s->apart, apart ? TM_APART : 0, memory_order_release);
		rxq_post(&tm->tags.ref.ring, pos);
	} while (!tm_step(&tm->tags.ref, &word));
	tm->n_apart += apart;
}

static int add(struct hca_tm *tm, struct ibv_ops_wr *wr)
{
	struct hca_rxq *rxq = &tm->tags;
	struct ibv_recv_wr recv = {.wr_id = wr->tm.add.recv_wr_id,
		.sg_list = wr->tm.add.sg_list,
		.num_sge = wr->tm.add.num_sge};
	struct seg_rxq_slot *s;
	uint32_t pos;

	if (recv.num_sge < 0 || (uint32_t)recv.num_sge > rxq->max_sge)
		return -EINVAL;
	if (own_rxq_used(rxq) >= rxq->depth || !rxq_find_free(&rxq->ref.ring, rxq->tail, &pos))
		return -ENOMEM;
	s = rxq_at(&rxq->ref, pos);
	recv_fill(&s->rqe, &recv);
	s->tag = wr->tm.add.tag;
	s->mask = wr->tm.add.mask;
	own_rxq_count(&rxq->put);
	rxq->tail = pos + 1;
	wr->tm.handle = pos;
	list_receive(tm, s, pos);
	return 0;
}

/* IBV_WC_SUCCESS, or IBV_WC_TM_ERR: a message has it, or had it. */
static uint8_t del(struct hca_tm *tm, uint32_t pos)
{
	struct seg_rxq_slot *s = rxq_at(&tm->tags.ref, pos);

	if (!tm_withdraw(&tm->tags.ref, pos))
		return IBV_WC_TM_ERR;
	if (atomic_exchange_explicit(&s->apart, 0, memory_order_relaxed) == TM_APART)
		tm->n_apart--;
	atomic_store_explicit(&tm->tags.put,
		atomic_load_explicit(&tm->tags.put, memory_order_relaxed) - 1,
		memory_order_relaxed);
	return IBV_WC_SUCCESS;
}

static void note_op(struct hca_tm *tm, const struct ibv_ops_wr *wr, uint8_t opcode, uint8_t status)
{
	bool behind = tm->n_apart || !in_sync(tm, tm_word(&tm->tags.ref));

	tm->op[tm->ops_done % tm->max_ops] = (struct tm_op){.wr_id = wr->wr_id,
		.opcode = opcode,
		.status = status,
		.wc_flags = behind ? IBV_WC_TM_SYNC_REQ : 0};
	tm->ops_done++;
}

/* With the lock held. */
static int operate(struct hca_tm *tm, struct ibv_ops_wr *wr)
{
	static const uint8_t opcodes[] = {[IBV_WR_TAG_ADD] = IBV_WC_TM_ADD,
		[IBV_WR_TAG_DEL] = IBV_WC_TM_DEL,
		[IBV_WR_TAG_SYNC] = IBV_WC_TM_SYNC};
	bool signaled = wr->flags & IBV_OPS_SIGNALED;
	uint8_t status = IBV_WC_SUCCESS;
	int rc = 0;

	if ((unsigned)wr->opcode > IBV_WR_TAG_SYNC ||
		wr->flags & ~(IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC))
		return -EINVAL;
	if (signaled && tm->ops_done - tm->ops_taken >= tm->max_ops)
		return -ENOMEM;
	if (wr->flags & IBV_OPS_TM_SYNC || wr->opcode == IBV_WR_TAG_SYNC)
		synchronise(tm, wr->tm.unexpected_cnt);
	if (wr->opcode == IBV_WR_TAG_ADD)
		rc = add(tm, wr);
	else if (wr->opcode == IBV_WR_TAG_DEL)
		status = del(tm, wr->tm.handle);
	if (rc)
		return rc;
	if (signaled)
		note_op(tm, wr, opcodes[wr->opcode], status);
	return 0;
}

/* Announces n operations; under the exec slot, for the CQ may be resized. */
static void announce(struct hca_tm *tm, uint32_t n)
{
	struct exec *x = n ? exec_get() : NULL;
	uint32_t self = proc_at()->attach_id;

	if (!x)
		return;
	slot_enter(x->slot, self, self);
	atomic_thread_fence(memory_order_seq_cst);
	for (; n; n--)
		complete_note(x, &tm->me);
	slot_leave(x->slot);
	exec_put(x);
}

int hca_srq_ops(struct hca_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad)
{
	struct hca_tm *tm = srq->tm;
	uint32_t done;
	int rc = 0;

	if (!tm || srq->epoch != proc_epoch()) {
		*bad = wr;
		return tm ? -EINVAL : -EOPNOTSUPP;
	}
	lock_take(&tm->tags.lock);
	done = tm->ops_done;
	for (; wr && !rc; wr = wr->next) {
		rc = operate(tm, wr);
		if (rc)
			*bad = wr;
	}
	announce(tm, tm->ops_done - done);
	lock_drop(&tm->tags.lock);
	srq_serve(srq);
	return rc;
}

bool tm_take_op(struct hca_tm *tm, struct ibv_wc *wc)
{
	const struct tm_op *op;
	bool any;

	lock_take(&tm->tags.lock);
	any = tm->ops_taken != tm->ops_done;
	if (any) {
		op = &tm->op[tm->ops_taken++ % tm->max_ops];
		memset(wc, 0, sizeof *wc);
		wc->wr_id = op->wr_id;
		wc->opcode = op->opcode;
		wc->status = op->status;
		wc->wc_flags = op->wc_flags;
	}
	lock_drop(&tm->tags.lock);
	return any;
}
