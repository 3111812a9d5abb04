// SPDX-License-Identifier: BSD-3-Clause
/* What an executor believes of a segment, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>
#include <sys/mman.h>

#include "hca/exec/exec.h"
#include "hca/exec/qp_timers.h"
#include "hca/exec/recover.h"
#include "hca/exec/resolve.h"
#include "hca/proc/heap.h"
#include "hca/seg/opcode.h"
#include "hca/seg/view.h"
#include "tests/unit/rnr_times.h"

static struct seg *seg;
static struct view view;

static int map_segment(void **state)
{
	(void)state;
	seg = mmap(NULL, SEG_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (seg == MAP_FAILED)
		return -1;
	view = (struct view){.seg = seg, .attach = 7};
	return 0;
}

static int unmap_segment(void **state)
{
	(void)state;
	return munmap(seg, SEG_SIZE);
}

/* ---- ends ---- */

static struct seg_qp *good_qp(uint32_t index)
{
	struct seg_qp *q = &seg->qp[index];
	uint64_t heap = offsetof(struct seg, heap);

	memset(q, 0, sizeof *q);
	atomic_store(&q->state, 5 << QPS_GEN_SHIFT | QPS_LIVE | IBV_QPS_RTS);
	q->qpn = 0x123;
	q->send_cq = q->recv_cq = 1;
	q->sq_log = q->rq_log = 4;
	q->sq_stride = sq_stride_for(1, 0, false);
	q->rq_stride = rq_stride_for(1, false);
	q->sq_off = q->rq_off = q->ring_off = q->park_off = heap;
	seg->cq[1].place[0].off = heap;
	seg->cq[1].place[0].log_size = 8;
	seg->cq[1].place[0].limit = 192;
	return q;
}

static void takes_a_sound_end(void **state)
{
	struct end e;

	(void)state;
	good_qp(3);
	memset(&e, 0xff, sizeof e); /* as malloc() may give it */
	assert_int_equal(end_init(&e, &view, 3), 0);
	assert_int_equal(e.gen, 5);
	assert_int_equal(end_state(&e), IBV_QPS_RTS);
	assert_int_equal(e.sq_mask, 15);
	assert_null(e.rxq.ring.slots);
	assert_false(e.rxq.matches_tags);
	atomic_store(&e.qp->state, 6 << QPS_GEN_SHIFT | QPS_LIVE | IBV_QPS_RTS);
	assert_int_equal(end_state(&e), 0); /* another generation */
}

static void refuses_what_does_not_fit(void **state)
{
	struct seg_qp *q;
	struct end e;

	(void)state;
	q = good_qp(3);
	atomic_store(&q->state, 0);
	assert_int_equal(end_init(&e, &view, 3), -ENOENT);
	static const struct {
		size_t field, size;
		uint64_t bad;
	} cases[] = {
#define BAD(field, value) {offsetof(struct seg_qp, field), sizeof(q->field), value}
		BAD(sq_off, 0),
		BAD(sq_off, SEG_SIZE),
		BAD(sq_off, SEG_SIZE - 64),
		BAD(sq_off, UINT64_MAX - 63),
		BAD(rq_off, 64),
		BAD(rq_off, UINT64_MAX - 63),
		BAD(ring_off, SEG_SIZE - SEG_RING_BYTES + 64),
		BAD(park_off, 0),
		BAD(sq_stride, 0),
		BAD(sq_stride, 63),
		BAD(sq_stride, 1 << 20),
		BAD(sq_stride, 65),
		BAD(rq_stride, 64),
		BAD(rq_stride, 1 << 20),
		BAD(sq_log, 31),
		BAD(sq_log, 255),
		BAD(rq_log, 31),
#undef BAD
	};

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		q = good_qp(3);
		memcpy((char *)q + cases[i].field, &cases[i].bad, cases[i].size);
		if (end_init(&e, &view, 3) != -EPROTO)
			fail_msg("case %u was taken", i);
	}
	good_qp(3);
	seg->cq[1].place[0].limit = 193;
	assert_int_equal(end_init(&e, &view, 3), -EPROTO);
	good_qp(3);
	seg->cq[1].place[0].log_size = 40;
	assert_int_equal(end_init(&e, &view, 3), -EPROTO);
	good_qp(3);
	seg->cq[1].place[0].off = SEG_SIZE - 8;
	assert_int_equal(end_init(&e, &view, 3), -EPROTO);
}

/* ---- weftd, after a death ---- */

static void no_event(uint32_t attach, uint32_t channel, void *arg)
{
	(void)attach, (void)channel, (void)arg;
}

static void no_timer(uint32_t attach, uint32_t qp, uint64_t when, void *arg)
{
	(void)attach, (void)qp, (void)when, (void)arg;
}

/* A target of XRC and a shared receive queue complete into no CQ of their own. */
static void looks_after_queues_without_cq(void **state)
{
	static const uint8_t types[] = {IBV_QPT_XRC_RECV, SEG_TYPE_SRQ, IBV_QPT_RC};
	const struct recover_env env = {
		.hub = seg, .hub_id = 1, .fire = no_event, .timer = no_timer};
	enum { ENTRY = 9, DEAD = 5 };

	(void)state;
	for (unsigned i = 0; i < sizeof types; i++) {
		struct seg_qp *q = good_qp(ENTRY);

		q->type = types[i];
		q->send_cq = q->recv_cq = SEG_NONE;
		q->peer_attach = DEAD;
		q->sq_tail = 2;
		q->park_reason = PARK_NO_PEER;
		q->deadline = 1;
		q->rq_token = DEAD;
		seg->hdr.qps_used = ENTRY + 1;
		recover_death(&env, seg, view.attach, DEAD);
		recover_timer(&env, seg, view.attach, ENTRY);
		assert_int_equal(q->sq_head, 0);
	}
	seg->hdr.qps_used = 0;
}

/* Entries in ERR that have no queue or no CQ, with work all the same: a peer scribbled. */
static void flushes_queues_that_are_none(void **state)
{
	enum { DEAD = 9, ENTRY = 1 };
	static const struct {
		uint8_t type;
		uint32_t send_cq, recv_cq;
	} cases[] = {
		{SEG_TYPE_SRQ, SEG_NONE, SEG_NONE},
		{SEG_TYPE_XRC_SRQ, SEG_NONE, 1},
		{IBV_QPT_XRC_RECV, SEG_NONE, SEG_NONE},
		{IBV_QPT_XRC_SEND, 1, SEG_NONE},
	};
	struct seg *hub = mmap(NULL, SEG_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	const struct recover_env env = {
		.hub = hub, .hub_id = 3, .fire = no_event, .timer = no_timer};

	(void)state;
	assert_ptr_not_equal(hub, MAP_FAILED);
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct seg_qp *q = good_qp(ENTRY);

		q->type = cases[i].type;
		q->send_cq = cases[i].send_cq;
		q->recv_cq = cases[i].recv_cq;
		q->state = 5 << QPS_GEN_SHIFT | QPS_LIVE | IBV_QPS_ERR;
		q->peer_attach = DEAD;
		q->sq_tail = 2;
		q->rq_off += 8192;
		((struct seg_rqe *)((char *)seg + q->rq_off))->posted = 1;
		seg->hdr.qps_used = ENTRY + 1;
		seg->hdr.cqs_used = 2;
		recover_death(&env, seg, view.attach, DEAD);
		assert_int_equal(q->rq_head, 0);
		assert_int_equal(q->sq_head, cases[i].type == IBV_QPT_XRC_SEND ? 2 : 0);
	}
	munmap(hub, SEG_SIZE);
}

/* Each index of a block has one number, and which ones follow each other is the key's. */
static void numbers_in_drawn_order(void **state)
{
	enum { KEYS = 64 };
	unsigned same = 0;

	(void)state;
	for (uint32_t key = 0; key < KEYS; key++) {
		uint32_t word = qpn_word(SEG_QPS - SEG_QPN_PER_BLOCK, key * 0x10001);
		uint8_t seen[SEG_QPN_PER_BLOCK] = {0};

		assert_true(word);
		assert_int_equal(qpn_first_index(word), SEG_QPS - SEG_QPN_PER_BLOCK);
		for (uint32_t i = 0; i < SEG_QPN_PER_BLOCK; i++) {
			uint32_t n = qpn_of_index(word, i);

			assert_true(n < SEG_QPN_PER_BLOCK && !seen[n]++);
			assert_int_equal(qpn_to_index(word, n), i);
			same += i && n == qpn_of_index(word, i - 1) + 1;
		}
	}
	/* as often as chance has it */
	assert_in_range(same, KEYS / 4, KEYS * 4);
}

static void finds_qps_by_number(void **state)
{
	const uint32_t word = qpn_word(SEG_QPN_PER_BLOCK, 0x12345678);
	const uint32_t qpn = 0x4200 + qpn_of_index(word, 5);

	(void)state;
	good_qp(SEG_QPN_PER_BLOCK + 5)->qpn = qpn;
	atomic_store(&seg->qpn_block[0x42], word);
	assert_int_equal(view_find_qpn(&view, qpn), SEG_QPN_PER_BLOCK + 5);
	assert_int_equal(view_find_qpn(&view, qpn ^ 1), -ENOENT);
	assert_int_equal(view_find_qpn(&view, qpn + 0x100), -ENOENT);
	atomic_store(&seg->qpn_block[0x44], UINT32_MAX); /* scribbled: masked, not followed */
	assert_int_equal(view_find_qpn(&view, 0x4405), -ENOENT);
}

/* ---- keys ---- */

static void region(uint32_t index, uint32_t key, unsigned access)
{
	struct seg_mr *mr = &seg->mr[index];

	mr->pd = 9;
	mr->access = access;
	mr->iova = 0x1000;
	mr->length = 0x100;
	mr->addr = 0x7000;
	atomic_store(&mr->key, key);
}

static void resolves_like_an_hca(void **state)
{
	static const struct {
		uint32_t pd, key;
		uint64_t addr, len;
		unsigned need;
		bool ok;
	} cases[] = {
		{9, 0x501, 0x1000, 0x100, 0, true},
		{9, 0x501, 0x10ff, 1, IBV_ACCESS_LOCAL_WRITE, true},
		{9, 0x501, 0x1000, 0x101, 0, false},
		{9, 0x501, 0x0fff, 1, 0, false},
		{9, 0x501, 0x1100, 1, 0, false},
		{9, 0x501, UINT64_MAX, 2, 0, false},
		{9, 0x501, 0x1080, UINT64_MAX, 0, false},
		{8, 0x501, 0x1000, 1, 0, false},
		{9, 0x502, 0x1000, 1, 0, false},
		{9, 0x601, 0x1000, 1, 0, false},
		{9, 0, 0x1000, 1, 0, false},
		{9, 0x501, 0x1000, 1, IBV_ACCESS_REMOTE_WRITE, false},
	};
	struct end e = {.view = view};
	struct held h;
	struct sgl l;

	(void)state;
	region(5, 0x501, IBV_ACCESS_LOCAL_WRITE);
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		h.n = 0;
		sgl_reset(&l);
		e.pd = cases[i].pd;
		if (resolve_remote(&e, cases[i].key, cases[i].addr, cases[i].len, cases[i].need, &l,
			    &h) != cases[i].ok)
			fail_msg("case %u", i);
		if (cases[i].ok)
			assert_int_equal(l.v[0].iov_base, 0x7000 + cases[i].addr - 0x1000);
	}
}

/* A window of region 5: its rkey is good for the QP it is bound to, its region lives, and only
 * remotely. */
static void resolves_windows(void **state)
{
	const struct seg_sge sge = {0x1010, 16, 0x601};
	struct end e = {.view = view, .pd = 9, .qpn = 42};
	struct seg_mr *mw = &seg->mr[6];
	struct held h = {.n = 0};
	struct sgl l;

	(void)state;
	region(5, 0x501, 0);
	region(6, 0x601, IBV_ACCESS_REMOTE_READ);
	mw->flags = MR_WINDOW | MR_WINDOW_QP;
	mw->under = 0x501;
	mw->qpn = 42;
	sgl_reset(&l);
	assert_true(resolve_remote(&e, 0x601, 0x1010, 16, IBV_ACCESS_REMOTE_READ, &l, &h));
	assert_int_equal(h.n, 2);
	assert_true(held_check(&h) == HELD_VALID);
	atomic_store(&seg->mr[5].key, 0);
	assert_false(held_check(&h) == HELD_VALID);
	h.n = 0;
	assert_false(resolve_remote(&e, 0x601, 0x1010, 16, 0, &l, &h));
	region(5, 0x501, 0);
	e.qpn = 43;
	assert_false(resolve_remote(&e, 0x601, 0x1010, 16, 0, &l, &h));
	h.n = 0;
	assert_false(resolve_sges(&view, 9, &sge, 1, 16, 0, &l, &h));
	mw->flags = mw->under = mw->qpn = 0;
}

static void notices_that_a_key_went(void **state)
{
	const struct seg_sge sge[] = {{0x1000, 16, 0x501}, {0, 0, 77}, {0x1010, 16, 0x501}};
	struct held h = {.n = 0};
	struct sgl l;

	(void)state;
	region(5, 0x501, 0);
	sgl_reset(&l);
	assert_true(resolve_sges(&view, 9, sge, 3, 32, 0, &l, &h));
	assert_int_equal(l.left, 32);
	assert_int_equal(held_check(&h), HELD_VALID);
	atomic_store(&seg->mr[5].share, MR_BUSY);
	assert_int_equal(held_check(&h), HELD_BUSY);
	atomic_store(&seg->mr[5].share, MR_COPY);
	atomic_store(&seg->mr[5].key, 0);
	assert_int_equal(held_check(&h), HELD_GONE);
	h.n = 0;
	region(5, 0x501, 0);
	sgl_reset(&l);
	assert_false(resolve_sges(&view, 9, sge, 3, 33, 0, &l, &h)); /* the list is too short */
}

/* ---- the rest ---- */

static void heap_reuses_and_clears(void **state)
{
	uint64_t a, b, c;

	(void)state;
	heap_reset(seg);
	assert_int_equal(heap_alloc(300, &a), 0);
	assert_int_equal(a % 256, 0);
	assert_int_equal(heap_alloc(10000, &b), 0);
	assert_int_equal(b % 4096, 0);
	memset((char *)seg + a, 1, 300);
	heap_free(a, 300);
	assert_int_equal(heap_alloc(512, &c), 0);
	assert_int_equal(c, a); /* the same class */
	for (int i = 0; i < 512; i++)
		assert_int_equal(((char *)seg)[c + i], 0);
	assert_int_equal(heap_alloc(SEG_SIZE * 2, &c), -ENOMEM);
	assert_int_equal(heap_alloc(SEG_SIZE / 2, &c), 0);
	assert_int_equal(heap_alloc(SEG_SIZE / 2, &c), -ENOMEM);
	heap_free(0, 300); /* ignored */
	heap_reset(seg);
}

static void rnr_timers_are_those_of_the_table(void **state)
{
	(void)state;
	for (unsigned code = 0; code < 32; code++)
		assert_int_equal(rnr_timer_ns(code), rnr_ns(code));
	assert_int_equal(rnr_timer_ns(0), 655360000);
}

static void opcodes_say_what_they_need(void **state)
{
	(void)state;
	assert_int_equal(op_of(IBV_WR_SEND)->kind, OP_SEND);
	assert_true(op_of(IBV_WR_RDMA_WRITE_WITH_IMM)->takes_recv);
	assert_false(op_of(IBV_WR_RDMA_WRITE)->takes_recv);
	assert_true(op_is_local(op_of(IBV_WR_LOCAL_INV)));
	assert_false(op_is_local(op_of(IBV_WR_RDMA_READ)));
	assert_true(op_may_be_inline(op_of(IBV_WR_ATOMIC_WRITE)));
	assert_false(op_may_be_inline(op_of(IBV_WR_RDMA_READ)));
	assert_int_equal(op_of(IBV_WR_TSO)->kind, OP_NONE);
	assert_int_equal(op_of(12345)->kind, OP_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_a_sound_end),
		cmocka_unit_test(refuses_what_does_not_fit),
		cmocka_unit_test(looks_after_queues_without_cq),
		cmocka_unit_test(flushes_queues_that_are_none),
		cmocka_unit_test(numbers_in_drawn_order),
		cmocka_unit_test(finds_qps_by_number),
		cmocka_unit_test(resolves_like_an_hca),
		cmocka_unit_test(resolves_windows),
		cmocka_unit_test(notices_that_a_key_went),
		cmocka_unit_test(heap_reuses_and_clears),
		cmocka_unit_test(rnr_timers_are_those_of_the_table),
		cmocka_unit_test(opcodes_say_what_they_need),
	};

	return cmocka_run_group_tests(tests, map_segment, unmap_segment);
}
