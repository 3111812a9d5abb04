// SPDX-License-Identifier: BSD-3-Clause
/*
 * The responder's half alone (hca/exec/respond.h): requests handed to a queue pair of this process
 * as by packets, piece by piece, into receives of its own and of a shared queue, by READs, atomics,
 * ATOMIC WRITEs and FLUSHes; those that are refused; and queue pairs that fail between two pieces.
 */
#include <stdlib.h>
#include <string.h>

#include "hca/exec/respond.h"
#include "hca/obj/qp.h"
#include "hca/proc/proc.h"
#include "include/weft/verbs_ext.h"
#include "tests/howto/memory/toy.h"
#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"
#include "verbs/objects.h"

enum { LEN = 1 << 16, PIECE = 700, BYTES = 5000, FROM = 0x4711, PSN = 99, EDGE = 64 };

#define TOY_IOVA 0x5a5a00000000ull

static struct vp_end a, b;
static struct exec *x;

static const struct end *end_of(const struct vp_end *e)
{
	return &to_qp(e->qp)->hca->me;
}

static void set_up(void)
{
	struct vp_opts o = vp_defaults();

	o.len = LEN;
	o.mr_access |= IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;
	o.qp_access |= IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;
	vp_pair(&a, &b, &o);
	x = exec_self();
	if (!x)
		die("no exec slot");
}

/* A request of all b's buffer. */
static struct request ask(enum ibv_wr_opcode opcode)
{
	return (struct request){.opcode = opcode,
		.from_qpn = FROM,
		.psn = PSN,
		.rkey = b.mr->rkey,
		.raddr = (uintptr_t)b.buf,
		.length = BYTES};
}

static void expect(struct verdict v, enum answer answer, enum ibv_wc_status status)
{
	CHECK_EQ(v.answer, answer);
	CHECK_EQ(v.status, status);
}

static void expect_ok(struct verdict v)
{
	expect(v, ANSWER_OK, IBV_WC_SUCCESS);
}

/* All pieces but the last. */
static void bring(struct respond *r, const uint8_t *bytes)
{
	uint32_t at = 0;

	for (; at + PIECE < BYTES; at += PIECE)
		expect_ok(respond_place(r, x, at, bytes + at, PIECE));
}

static void bring_last(struct respond *r, const uint8_t *bytes, uint32_t imm)
{
	const struct last_piece last = {.imm = imm};
	uint32_t at = BYTES - BYTES % PIECE;

	expect_ok(respond_place(r, x, at, bytes + at, BYTES - at));
	expect_ok(respond_end(r, x, &last));
}

/* b's QP is in ERR, and its owner is told why; both ends begin anew. */
static void expect_event(enum ibv_event_type type)
{
	struct ibv_async_event ev;

	CHECK_EQ(vp_get_state(&b), IBV_QPS_ERR);
	if (vp_async(b.ctx, &ev, VP_DEADLINE_MS)) {
		CHECK_EQ(ev.event_type, type);
		ibv_ack_async_event(&ev);
	} else {
		CHECK(!"an async event");
	}
	vp_reconnect(&a, &b);
}

/* ---- messages ---- */

static void send_in_pieces(void)
{
	struct request rq = ask(IBV_WR_SEND_WITH_IMM);
	uint8_t bytes[BYTES];
	struct respond r;
	struct ibv_wc wc;

	check_case("a SEND in pieces");
	pattern_fill(bytes, BYTES, 1);
	expect(respond_begin(&r, x, end_of(&b), &rq), ANSWER_RNR, 0);
	CHECK_EQ(vp_post_recv(&b, 5, EDGE, BYTES), 0);
	expect_ok(respond_begin(&r, x, end_of(&b), &rq));
	bring(&r, bytes);
	CHECK_EQ(ibv_poll_cq(b.rcq, 1, &wc), 0);
	bring_last(&r, bytes, 0x12345678);
	vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 5);
	CHECK_EQ(wc.byte_len, BYTES);
	CHECK_EQ(wc.imm_data, 0x12345678);
	CHECK_EQ(wc.src_qp, FROM);
	CHECK(pattern_filled(b.buf + EDGE, BYTES, 1));
	CHECK(pattern_all(b.buf, EDGE, 0) && pattern_all(b.buf + EDGE + BYTES, EDGE, 0));
}

static void write_in_pieces(void)
{
	struct request rq = ask(IBV_WR_RDMA_WRITE);
	const struct last_piece last = {0};
	uint8_t bytes[BYTES];
	struct respond r;

	check_case("a WRITE in pieces");
	pattern_fill(bytes, BYTES, 2);
	expect_ok(respond_begin(&r, x, end_of(&b), &rq));
	bring(&r, bytes);
	bring_last(&r, bytes, 0);
	CHECK(pattern_filled(b.buf, BYTES, 2));
	check_case("one of which a piece is missing");
	expect_ok(respond_begin(&r, x, end_of(&b), &rq));
	bring(&r, bytes);
	expect(respond_end(&r, x, &last), ANSWER_NAK, IBV_WC_REM_INV_REQ_ERR);
	expect(respond_begin(&r, x, end_of(&b), &rq), ANSWER_NOT_READY, 0);
	expect_event(IBV_EVENT_QP_REQ_ERR);
}

/* The receive is flushed, once, and the rest of the message finds that out. */
static void error_between(void)
{
	struct request rq = ask(IBV_WR_SEND);
	const struct last_piece last = {0};
	uint8_t bytes[BYTES] = {0};
	struct respond r;
	struct ibv_wc wc;

	check_case("ERR between two pieces");
	CHECK_EQ(vp_post_recv(&b, 6, 0, BYTES), 0);
	expect_ok(respond_begin(&r, x, end_of(&b), &rq));
	bring(&r, bytes);
	CHECK_EQ(vp_state(&b, IBV_QPS_ERR), 0);
	vp_want(b.rcq, &wc, IBV_WC_WR_FLUSH_ERR, 6);
	expect(respond_place(&r, x, 0, bytes, PIECE), ANSWER_NOT_READY, 0);
	expect(respond_end(&r, x, &last), ANSWER_NOT_READY, 0);
	CHECK_EQ(ibv_poll_cq(b.rcq, 1, &wc), 0);
	vp_reconnect(&a, &b);
	check_case("a message from before a RESET");
	CHECK_EQ(vp_post_recv(&b, 7, 0, BYTES), 0);
	expect(respond_place(&r, x, 0, bytes, PIECE), ANSWER_NOT_READY, 0);
	CHECK_EQ(vp_state(&b, IBV_QPS_ERR), 0);
	vp_want(b.rcq, &wc, IBV_WC_WR_FLUSH_ERR, 7);
	vp_reconnect(&a, &b);
}

/* ---- from a shared queue ---- */

/* Its receives, and their memory. */
struct shared {
	struct ibv_pd *pd;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	uint8_t buf[3 * BYTES];
};

static void post_shared(struct shared *s, uint32_t id)
{
	struct ibv_sge sge = {.addr = (uintptr_t)s->buf + (size_t)id * BYTES,
		.length = BYTES,
		.lkey = s->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

	CHECK_EQ(ibv_post_srq_recv(s->srq, &wr, &bad), 0);
}

/* Two messages at once, a third that is given up. */
static void two_at_once(struct shared *sh)
{
	struct request rq = ask(IBV_WR_SEND);
	uint8_t bytes[BYTES], other[BYTES];
	struct respond r, s, t;
	struct ibv_wc wc;

	check_case("two messages at once from a shared queue");
	pattern_fill(bytes, BYTES, 3);
	pattern_fill(other, BYTES, 4);
	for (uint32_t i = 0; i < 3; i++)
		post_shared(sh, i);
	expect_ok(respond_begin(&r, x, end_of(&b), &rq));
	expect_ok(respond_begin(&s, x, end_of(&a), &rq));
	expect_ok(respond_begin(&t, x, end_of(&b), &rq));
	expect(respond_begin(&(struct respond){0}, x, end_of(&b), &rq), ANSWER_RNR, 0);
	respond_drop(&t, x);
	bring(&r, bytes);
	bring(&s, other);
	bring_last(&s, other, 0);
	vp_want(a.rcq, &wc, IBV_WC_SUCCESS, 1);
	bring_last(&r, bytes, 0);
	vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 0);
	CHECK(pattern_filled(sh->buf, BYTES, 3) && pattern_filled(sh->buf + BYTES, BYTES, 4));
}

static void given_back(void)
{
	struct request rq = ask(IBV_WR_SEND);
	uint8_t bytes[BYTES];
	struct respond r, s;
	struct ibv_wc wc;

	check_case("a message that cannot go on gives its receive back");
	pattern_fill(bytes, BYTES, 5);
	expect_ok(respond_begin(&r, x, end_of(&b), &rq));
	expect(respond_begin(&s, x, end_of(&a), &rq), ANSWER_RNR, 0);
	CHECK_EQ(vp_state(&b, IBV_QPS_ERR), 0);
	expect(respond_place(&r, x, 0, bytes, PIECE), ANSWER_NOT_READY, 0);
	expect_ok(respond_begin(&s, x, end_of(&a), &rq));
	bring(&s, bytes);
	bring_last(&s, bytes, 0);
	vp_want(a.rcq, &wc, IBV_WC_SUCCESS, 2);
}

static void shared_receives(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_context *ctx = vp_open();
	struct vp_opts o = vp_defaults();
	struct vp_addr to_a, to_b;
	static struct shared sh;

	sh.pd = ibv_alloc_pd(ctx);
	sh.srq = ibv_create_srq(sh.pd, &attr);
	sh.mr = ibv_reg_mr(sh.pd, sh.buf, sizeof sh.buf, IBV_ACCESS_LOCAL_WRITE);
	if (!sh.srq || !sh.mr)
		die("a shared receive queue");
	o.srq = sh.srq;
	vp_make(&a, ctx, &o);
	vp_make(&b, ctx, &o);
	to_a = vp_addr(&a);
	to_b = vp_addr(&b);
	vp_connect(&a, &to_b);
	vp_connect(&b, &to_a);
	two_at_once(&sh);
	given_back();
	vp_free(&a);
	vp_free(&b);
	CHECK_EQ(ibv_destroy_srq(sh.srq), 0);
	CHECK_EQ(ibv_dereg_mr(sh.mr), 0);
	CHECK_EQ(ibv_dealloc_pd(sh.pd), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

/* ---- in one piece ---- */

static void reads(void)
{
	struct request rq = ask(IBV_WR_RDMA_READ);
	uint8_t to[BYTES];

	check_case("a READ in pieces");
	pattern_fill(b.buf, BYTES, 7);
	for (uint32_t at = 0; at < BYTES; at += PIECE)
		expect_ok(respond_read(
			x, end_of(&b), &rq, at, to + at, BYTES - at < PIECE ? BYTES - at : PIECE));
	CHECK(pattern_filled(to, BYTES, 7));
	check_case("past its end");
	expect(respond_read(x, end_of(&b), &rq, BYTES - 1, to, 2), ANSWER_NAK,
		IBV_WC_REM_INV_REQ_ERR);
	expect_event(IBV_EVENT_QP_REQ_ERR);
}

static void words(void)
{
	struct request rq = ask(IBV_WR_ATOMIC_FETCH_AND_ADD);
	uint64_t before = 0, word = 40;

	check_case("atomics");
	memcpy(b.buf, &word, sizeof word);
	rq.compare_add = 2;
	expect_ok(respond_at_once(x, end_of(&b), &rq, &before));
	CHECK_EQ(before, 40);
	rq = ask(IBV_WR_ATOMIC_CMP_AND_SWP);
	rq.compare_add = 42;
	rq.swap = 7;
	expect_ok(respond_at_once(x, end_of(&b), &rq, &before));
	CHECK_EQ(before, 42);
	expect_ok(respond_at_once(x, end_of(&b), &rq, &before));
	CHECK_EQ(before, 7);
	rq = ask(IBV_WR_ATOMIC_WRITE);
	rq.word = 0x0123456789abcdef;
	expect_ok(respond_at_once(x, end_of(&b), &rq, &before));
	memcpy(&word, b.buf, sizeof word);
	CHECK_EQ(word, 0x0123456789abcdef);
	for (uint32_t i = 0; i < 2; i++) {
		rq = ask(IBV_WR_FLUSH);
		rq.flush = flush_operand(i ? IBV_FLUSH_PERSISTENT : IBV_FLUSH_GLOBAL, 0);
		expect_ok(respond_at_once(x, end_of(&b), &rq, &before));
	}
	check_case("an atomic that is not aligned");
	rq = ask(IBV_WR_ATOMIC_FETCH_AND_ADD);
	rq.raddr += 4;
	expect(respond_at_once(x, end_of(&b), &rq, &before), ANSWER_NAK, IBV_WC_REM_INV_REQ_ERR);
	expect_event(IBV_EVENT_QP_REQ_ERR);
}

/* ---- what is refused ---- */

static void wrong_keys(void)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_WRITE, IBV_WR_FLUSH};
	uint8_t to[PIECE];
	uint64_t before;

	for (unsigned i = 0; i < sizeof opcodes / sizeof *opcodes; i++) {
		struct request rq = ask(opcodes[i]);
		struct respond r;
		struct verdict v;

		check_case("a key that is none, opcode %d", opcodes[i]);
		rq.rkey ^= 0x5500;
		rq.flush = flush_operand(IBV_FLUSH_GLOBAL, 0);
		v = i == 0   ? respond_begin(&r, x, end_of(&b), &rq)
		    : i == 1 ? respond_read(x, end_of(&b), &rq, 0, to, PIECE)
			     : respond_at_once(x, end_of(&b), &rq, &before);
		expect(v, ANSWER_NAK, IBV_WC_REM_ACCESS_ERR);
		CHECK_EQ(respond_nak_code(v.status), 2);
		expect_event(IBV_EVENT_QP_ACCESS_ERR);
	}
}

static void nonsense(void)
{
	struct request rq = ask((enum ibv_wr_opcode)200);
	uint8_t bytes[BYTES] = {0};
	struct respond r;
	struct ibv_wc wc;
	uint64_t before;

	check_case("an opcode that is none");
	expect(respond_begin(&r, x, end_of(&b), &rq), ANSWER_NAK, IBV_WC_REM_INV_REQ_ERR);
	expect_event(IBV_EVENT_QP_REQ_ERR);
	expect(respond_at_once(x, end_of(&b), &rq, &before), ANSWER_NAK, IBV_WC_REM_INV_REQ_ERR);
	expect_event(IBV_EVENT_QP_REQ_ERR);
	check_case("a piece beyond the range");
	rq = ask(IBV_WR_RDMA_WRITE);
	expect_ok(respond_begin(&r, x, end_of(&b), &rq));
	expect(respond_place(&r, x, UINT64_MAX - 1, bytes, PIECE), ANSWER_NAK,
		IBV_WC_REM_INV_REQ_ERR);
	expect_event(IBV_EVENT_QP_REQ_ERR);
	check_case("a receive that is too small");
	CHECK_EQ(vp_post_recv(&b, 8, 0, PIECE), 0);
	rq = ask(IBV_WR_SEND);
	expect_ok(respond_begin(&r, x, end_of(&b), &rq));
	expect_ok(respond_place(&r, x, 0, bytes, PIECE));
	expect(respond_place(&r, x, PIECE, bytes, 1), ANSWER_NAK, IBV_WC_REM_INV_REQ_ERR);
	vp_want(b.rcq, &wc, IBV_WC_LOC_LEN_ERR, 8);
	vp_reconnect(&a, &b);
	check_case("a piece of a SEND whose end is beyond all numbers");
	CHECK_EQ(vp_post_recv(&b, 8, 0, BYTES), 0);
	expect_ok(respond_begin(&r, x, end_of(&b), &rq));
	expect(respond_place(&r, x, UINT64_MAX - 1, bytes, PIECE), ANSWER_NAK,
		IBV_WC_REM_INV_REQ_ERR);
	vp_want(b.rcq, &wc, IBV_WC_LOC_LEN_ERR, 8);
	vp_reconnect(&a, &b);
	check_case("a key to invalidate that is none");
	CHECK_EQ(vp_post_recv(&b, 9, 0, BYTES), 0);
	rq = ask(IBV_WR_SEND_WITH_INV);
	expect_ok(respond_begin(&r, x, end_of(&b), &rq));
	expect(respond_end(&r, x, &(struct last_piece){.imm = 0x1234}), ANSWER_NAK,
		IBV_WC_REM_ACCESS_ERR);
	vp_want(b.rcq, &wc, IBV_WC_WR_FLUSH_ERR, 9);
	expect_event(IBV_EVENT_QP_ACCESS_ERR);
}

/* Memory that only functions reach is for a thread that may call them. */
static void by_functions(void)
{
	struct request rq = ask(IBV_WR_RDMA_WRITE);
	uint8_t bytes[PIECE], got[PIECE];
	struct respond r;
	struct toy toy;

	check_case("memory that only functions reach");
	pattern_fill(bytes, PIECE, 9);
	CHECK_EQ(toy_reg(&toy, b.pd, BYTES, TOY_IOVA,
			 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
		0);
	rq.rkey = toy.key;
	rq.raddr = TOY_IOVA;
	expect_ok(respond_begin(&r, x, end_of(&b), &rq));
	expect(respond_place(&r, x, 100, bytes, PIECE), ANSWER_LATER, 0);
	CHECK_EQ(atomic_load(&toy.calls), 0);
	x->is_worker = true;
	expect_ok(respond_place(&r, x, 100, bytes, PIECE));
	toy_get(&toy, 100, got, PIECE);
	CHECK(!memcmp(got, bytes, PIECE));
	atomic_store(&toy.broken, true);
	expect(respond_place(&r, x, 100, bytes, PIECE), ANSWER_NAK, IBV_WC_REM_ACCESS_ERR);
	x->is_worker = false;
	expect_event(IBV_EVENT_QP_ACCESS_ERR);
	toy_dereg(&toy);
}

int main(void)
{
	set_up();
	send_in_pieces();
	write_in_pieces();
	error_between();
	reads();
	words();
	wrong_keys();
	nonsense();
	by_functions();
	vp_pair_free(&a, &b);
	shared_receives();
	return check_result();
}
