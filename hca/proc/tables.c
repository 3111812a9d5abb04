// SPDX-License-Identifier: BSD-3-Clause
#include "hca/proc/tables.h"

#include <errno.h>

#include "base/atomic.h"
#include "base/draw.h"
#include "base/lock.h"
#include "hca/obj/mr.h"
#include "hca/proc/proc.h"
#include "pages/vma.h"

/*
 * An index is taken again as late as possible, so that a stale key or ticket meets nobody; but
 * each that was never used costs the segment new memory.
 */
enum { SPAN_MIN = 4096 };

_Static_assert(SEG_QPN_PER_BLOCK == (int)RDV_QPN_BLOCK, "blocks are leased as they are used");

/* Where no region is to be found; its key is none. */
static struct hca_mr nothing;

/* One table: slots, a cursor that walks round, and how many are taken. */
struct table {
	struct lock lock;
	void *_Atomic *slot;
	uint32_t size, cursor, used;
	uint32_t high; /* slots from here on were never used */
};

/* Each from a page's beginning: what few objects take of them is one page of each. */
static _Alignas(PAGE_BYTES) void *_Atomic qp_slots[SEG_QPS];
static _Alignas(PAGE_BYTES) void *_Atomic cq_slots[SEG_CQS];
static _Alignas(PAGE_BYTES) void *_Atomic mr_slots[SEG_MRS];
static struct table qps = {.slot = qp_slots};
static struct table cqs = {.slot = cq_slots, .size = SEG_CQS};
static struct table mrs = {.slot = mr_slots, .size = SEG_MRS};
/*
 * The entry of a region is its slot's number with some bits turned, which are drawn: keys then
 * begin anywhere, and what few regions take of the segment lies together all the same.
 */
static uint32_t mr_turn;
/* Of each block of indices: its first number, and its word in the segment. */
static struct numbers {
	uint32_t first, word;
} numbers[SEG_QPS / SEG_QPN_PER_BLOCK];
static _Atomic uint32_t some_qpn;

static void table_clear(struct table *t)
{
	for (uint32_t i = 0; i < t->high; i++)
		atomic_store_explicit(&t->slot[i], NULL, memory_order_relaxed);
	t->cursor = t->used = t->high = 0;
}

void tables_reset(void)
{
	table_clear(&qps);
	qps.size = 0;
	atomic_store_explicit(&some_qpn, 0, memory_order_relaxed);
	table_clear(&cqs);
	table_clear(&mrs);
	mr_slots[mr_turn] = NULL;
	mr_turn = draw_below(SEG_MRS);
	/* Entry 0 is nobody's, nor is slot 0. */
	if (mr_turn)
		mr_slots[mr_turn] = &nothing;
	mrs.used = mr_turn > 0;
}

void tables_forked_child(void)
{
	struct lock open = {.word = 0};

	qps.lock = cqs.lock = mrs.lock = open;
}

/* With the lock held: a free index other than 0, or -ENOMEM. */
static int find_free(struct table *t)
{
	uint32_t end;

	if (t->used + 1 >= t->size)
		return -ENOMEM;
	end = t->high >= SPAN_MIN && t->used < t->high / 2 ? t->high : t->size;
	do
		t->cursor = t->cursor + 1 < end ? t->cursor + 1 : 1;
	while (atomic_load_explicit(&t->slot[t->cursor], memory_order_relaxed));
	if (t->high <= t->cursor)
		t->high = t->cursor + 1;
	return t->cursor;
}

static int put(struct table *t, void *obj)
{
	int index;

	lock_take(&t->lock);
	index = find_free(t);
	if (index > 0) {
		atomic_store_explicit(&t->slot[index], obj, memory_order_release);
		t->used++;
	}
	lock_drop(&t->lock);
	return index;
}

static void del(struct table *t, uint32_t index)
{
	lock_take(&t->lock);
	atomic_store_explicit(&t->slot[index], NULL, memory_order_release);
	t->used--;
	lock_drop(&t->lock);
}

static void *get(const struct table *t, uint32_t index, uint32_t size)
{
	return index < size ? atomic_load_explicit(&t->slot[index], memory_order_acquire) : NULL;
}

/* In the table of QPs an SRQ is marked by the lowest bit of its pointer. */
enum { SRQ_MARK = 1 };

struct hca_qp *table_qp(uint32_t index)
{
	void *p = get(&qps, index, SEG_QPS);

	return (uintptr_t)p & SRQ_MARK ? NULL : p;
}

struct hca_srq *table_srq(uint32_t index)
{
	void *p = get(&qps, index, SEG_QPS);

	return (uintptr_t)p & SRQ_MARK ? (struct hca_srq *)((uintptr_t)p - SRQ_MARK) : NULL;
}

struct hca_cq *table_cq(uint32_t index)
{
	return get(&cqs, index, SEG_CQS);
}

struct hca_mr *table_mr(uint32_t index)
{
	return index ? get(&mrs, index ^ mr_turn, SEG_MRS) : NULL;
}

static void note_used(_Atomic uint32_t *used, uint32_t index)
{
	if (atomic_load_explicit(used, memory_order_relaxed) < index + 1)
		atomic_store_explicit(used, index + 1, memory_order_release);
}

int table_add_cq(struct hca_cq *cq)
{
	int index = put(&cqs, cq);

	if (index > 0) {
		lock_take(&cqs.lock);
		note_used(&proc_seg()->hdr.cqs_used, index);
		lock_drop(&cqs.lock);
	}
	return index;
}

int table_add_mr(struct hca_mr *mr)
{
	int slot = put(&mrs, mr);

	return slot < 0 ? slot : (int)((uint32_t)slot ^ mr_turn);
}

/* With the lock held: room for one more block of QPs. */
static int grow_qps(void)
{
	struct numbers *n = &numbers[qps.size / SEG_QPN_PER_BLOCK];
	int rc;

	if (qps.size + SEG_QPN_PER_BLOCK > SEG_QPS)
		return -ENOMEM;
	rc = rdv_lease_qpns(&n->first);
	if (rc)
		return rc;
	n->word = qpn_word(qps.size, draw_u32());
	atomic_store_explicit(&proc_seg()->qpn_block[n->first / SEG_QPN_PER_BLOCK], n->word,
		memory_order_release);
	if (!qps.size)
		atomic_store_explicit(&some_qpn, n->first, memory_order_relaxed);
	qps.size += SEG_QPN_PER_BLOCK;
	return 0;
}

/* With the lock held. */
static uint32_t number_of(uint32_t index)
{
	const struct numbers *n = &numbers[index / SEG_QPN_PER_BLOCK];

	return n->first + qpn_of_index(n->word, index % SEG_QPN_PER_BLOCK);
}

uint32_t table_some_qpn(void)
{
	return atomic_load_explicit(&some_qpn, memory_order_relaxed);
}

static int add_numbered(void *qp, uint32_t *qpn)
{
	int index, rc = 0;

	lock_take(&qps.lock);
	/* A block early, so that a number rests a while before it is used again. */
	if (qps.used + SEG_QPN_PER_BLOCK / 2 >= qps.size)
		rc = grow_qps();
	index = qps.size ? find_free(&qps) : rc;
	if (index > 0) {
		atomic_store_explicit(&qps.slot[index], qp, memory_order_release);
		qps.used++;
		*qpn = number_of(index);
		note_used(&proc_seg()->hdr.qps_used, index);
	}
	lock_drop(&qps.lock);
	return index;
}

int table_add_qp(struct hca_qp *qp, uint32_t *qpn)
{
	return add_numbered(qp, qpn);
}

int table_add_srq(struct hca_srq *srq, uint32_t *srqn)
{
	return add_numbered((char *)srq + SRQ_MARK, srqn);
}

void table_del_cq(uint32_t index)
{
	del(&cqs, index);
}

void table_del_mr(uint32_t index)
{
	del(&mrs, index ^ mr_turn);
}

void table_hold_mr(struct hca_mr *mr)
{
	void *found = mr;

	/* A client's callback may come when quarantine has given the entry to another. */
	atomic_compare_exchange_strong_explicit(&mrs.slot[mr->index ^ mr_turn], &found, &nothing,
		memory_order_acq_rel, memory_order_relaxed);
}

void table_return_mr(struct hca_mr *mr)
{
	atomic_store_explicit(&mrs.slot[mr->index ^ mr_turn], mr, memory_order_release);
}

void table_del_qp(uint32_t index)
{
	del(&qps, index);
}

struct hca_qp *table_enter_qp(struct exec *x, uint32_t index)
{
	slot_enter(x->slot, x->attach, x->attach);
	atomic_thread_fence(memory_order_seq_cst);
	if (!(atomic_load_explicit(&proc_seg()->qp[index].state, memory_order_acquire) & QPS_LIVE))
		return NULL;
	return table_qp(index);
}
