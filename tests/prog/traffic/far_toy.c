// SPDX-License-Identifier: BSD-3-Clause
/*
 * far_toy [sends]: RC queue pairs of two processes whose far end is the toy of
 * docs/howto/new-transport.md: SENDs and WRITEs of one piece and of many, requests that run ahead
 * of their completions, receives that come late or not at all, requests that are refused; and queue
 * pairs beside them that are near.  sends: no WRITEs (of which ThreadSanitizer does not see that
 * another process has put them in order).
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/howto/transport/toy.h"
#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 256 << 10, EDGE = 64, STREAM = 400, STREAM_BYTES = 3000, DEPTH = 32 };

struct side {
	struct vp_end e;
	struct vp_addr peer;
	int sock, pair[2];
	bool asks, sends_only;
};

/* Connects it with the other side's, which is elsewhere. */
static void join(struct side *s)
{
	struct vp_addr mine = vp_addr(&s->e);

	s->peer = vp_swap(s->sock, &mine);
	memcpy(s->peer.gid.raw, toy_gid, sizeof toy_gid);
	vp_connect(&s->e, &s->peer);
	vp_sync(s->sock);
}

static void open_end(struct side *s, uint8_t rnr_retry)
{
	struct vp_opts o = vp_defaults();

	o.len = LEN;
	o.rnr_retry = rnr_retry;
	o.send_wr = o.recv_wr = 2 * DEPTH;
	o.cqe = 4 * DEPTH;
	vp_make(&s->e, vp_open(), &o);
	join(s);
}

static void close_end(struct side *s)
{
	struct ibv_context *ctx = s->e.ctx;

	vp_sync(s->sock);
	vp_free(&s->e);
	CHECK_EQ(ibv_close_device(ctx), 0);
	vp_sync(s->sock);
}

/* ---- messages ---- */

static const uint32_t sizes[] = {0, 1, 36, 1023, 1024, 1025, 5000, 100000};

enum { SIZES = sizeof sizes / sizeof *sizes };

/* Bytes beside those that were to come are as before. */
static void check_bytes(const struct side *s, size_t off, uint32_t len, uint32_t seed)
{
	CHECK(pattern_filled(s->e.buf + off, len, seed));
	CHECK(pattern_all(s->e.buf + off - EDGE, EDGE, 0xee));
	CHECK(pattern_all(s->e.buf + off + len, EDGE, 0xee));
}

static void sends(struct side *s)
{
	struct ibv_wc wc;

	for (uint32_t i = 0; i < 2 * SIZES; i++) {
		uint32_t len = sizes[i / 2];
		bool imm = i % 2;

		check_case("SEND of %u bytes%s", len, imm ? " with immediate" : "");
		if (s->asks) {
			pattern_fill(s->e.buf + EDGE, len, i);
			vp_sync(s->sock);
			CHECK_EQ(vp_post_send(&s->e, i, imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
					 IBV_SEND_SIGNALED, EDGE, len, NULL, 0),
				0);
			vp_want(s->e.scq, &wc, IBV_WC_SUCCESS, i);
			continue;
		}
		memset(s->e.buf, 0xee, len + 2 * EDGE);
		CHECK_EQ(vp_post_recv(&s->e, i, EDGE, len), 0);
		vp_sync(s->sock);
		vp_want(s->e.rcq, &wc, IBV_WC_SUCCESS, i);
		CHECK_EQ(wc.byte_len, len);
		CHECK_EQ(wc.opcode, IBV_WC_RECV);
		CHECK_EQ(wc.wc_flags, imm ? IBV_WC_WITH_IMM : 0);
		CHECK(!imm || be32toh(wc.imm_data) == i);
		check_bytes(s, EDGE, len, i);
	}
	vp_sync(s->sock);
}

static void writes(struct side *s)
{
	struct ibv_wc wc;

	for (uint32_t i = 0; i < SIZES; i++) {
		uint32_t len = sizes[i];

		check_case("WRITE of %u bytes", len);
		if (s->asks) {
			pattern_fill(s->e.buf + EDGE, len, i);
			vp_sync(s->sock);
			CHECK_EQ(vp_post_send(
					 &s->e, 1, IBV_WR_RDMA_WRITE, 0, EDGE, len, &s->peer, EDGE),
				0);
			CHECK_EQ(vp_post_send(&s->e, i, IBV_WR_RDMA_WRITE_WITH_IMM,
					 IBV_SEND_SIGNALED, EDGE, len, &s->peer, LEN / 2),
				0);
			vp_want(s->e.scq, &wc, IBV_WC_SUCCESS, i);
			continue;
		}
		memset(s->e.buf, 0xee, LEN);
		CHECK_EQ(vp_post_recv(&s->e, i, 0, 0), 0);
		vp_sync(s->sock);
		vp_want(s->e.rcq, &wc, IBV_WC_SUCCESS, i);
		CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		CHECK_EQ(be32toh(wc.imm_data), i);
		CHECK_EQ(wc.byte_len, len);
		check_bytes(s, EDGE, len, i);
		check_bytes(s, LEN / 2, len, i);
	}
	vp_sync(s->sock);
}

/* ---- both directions at once ---- */

static void stream_recv(struct side *s, uint32_t i)
{
	CHECK_EQ(vp_post_recv(&s->e, i, LEN / 2 + (size_t)(i % DEPTH) * STREAM_BYTES, STREAM_BYTES),
		0);
}

static void stream_send(struct side *s, uint32_t i)
{
	size_t off = (size_t)(i % DEPTH) * STREAM_BYTES;

	pattern_fill(s->e.buf + off, STREAM_BYTES, i);
	CHECK_EQ(vp_post_send(&s->e, i, IBV_WR_SEND, IBV_SEND_SIGNALED, off, STREAM_BYTES, NULL, 0),
		0);
}

static void stream(struct side *s)
{
	uint32_t posted = 0, sent = 0, came = 0;
	double end = now_ms() + VP_DEADLINE_MS;
	struct ibv_wc wc;

	check_case("many, both ways");
	for (uint32_t i = 0; i < DEPTH; i++)
		stream_recv(s, i);
	vp_sync(s->sock);
	while ((sent < STREAM || came < STREAM) && now_ms() < end && !check_failures()) {
		if (posted < STREAM && posted - sent < DEPTH)
			stream_send(s, posted++);
		if (ibv_poll_cq(s->e.scq, 1, &wc) > 0) {
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
			CHECK_EQ(wc.wr_id, sent++);
		}
		if (ibv_poll_cq(s->e.rcq, 1, &wc) > 0) {
			size_t off = LEN / 2 + (size_t)(came % DEPTH) * STREAM_BYTES;

			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
			CHECK_EQ(wc.wr_id, came);
			CHECK(pattern_filled(s->e.buf + off, STREAM_BYTES, came));
			if (came + DEPTH < STREAM)
				stream_recv(s, came + DEPTH);
			came++;
		}
	}
	CHECK_EQ(sent, STREAM);
	CHECK_EQ(came, STREAM);
	CHECK(toy_count(TOY_AHEAD) > 1);
	vp_sync(s->sock);
}

/* ---- receives that are missing ---- */

static void await_rnrs(unsigned n)
{
	double end = now_ms() + VP_DEADLINE_MS;

	while (toy_count(TOY_RNRS) < n && now_ms() < end)
		usleep(1000);
	CHECK(toy_count(TOY_RNRS) >= n);
}

static void late_receives(struct side *s)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;

	check_case("receives that come late");
	if (s->asks) {
		for (uint32_t i = 0; i < 3; i++)
			CHECK_EQ(vp_post_send(&s->e, i, IBV_WR_SEND, IBV_SEND_SIGNALED,
					 (size_t)i * 2000, 2000, NULL, 0),
				0);
		await_rnrs(toy_count(TOY_RNRS) + 3);
		CHECK_EQ(ibv_poll_cq(s->e.scq, 1, &wc), 0);
	}
	vp_sync(s->sock);
	for (uint32_t i = 0; i < 3 && !s->asks; i++)
		CHECK_EQ(vp_post_recv(&s->e, i, (size_t)i * 2000, 2000), 0);
	for (uint32_t i = 0; i < 3; i++)
		vp_want(s->asks ? s->e.scq : s->e.rcq, &wc, IBV_WC_SUCCESS, i);
	CHECK_EQ(ibv_query_qp(s->e.qp, &attr, IBV_QP_SQ_PSN, &init), 0);
	vp_tell(s->sock, s->asks ? attr.sq_psn : attr.rq_psn);
	CHECK_EQ(vp_hear(s->sock), s->asks ? attr.sq_psn : attr.rq_psn);
}

static void no_receives(struct side *s)
{
	struct ibv_wc wc;

	check_case("receives that never come");
	if (s->asks) {
		CHECK_EQ(vp_post_send(&s->e, 1, IBV_WR_SEND, 0, 0, 2000, NULL, 0), 0);
		CHECK_EQ(vp_post_send(&s->e, 2, IBV_WR_SEND, 0, 0, 2000, NULL, 0), 0);
		vp_want(s->e.scq, &wc, IBV_WC_RNR_RETRY_EXC_ERR, 1);
		vp_want(s->e.scq, &wc, IBV_WC_WR_FLUSH_ERR, 2);
		CHECK_EQ(vp_get_state(&s->e), IBV_QPS_ERR);
	}
}

/* ---- requests that are refused ---- */

/* The responder's QP is in ERR, and its owner is told so. */
static void expect_event(struct side *s, enum ibv_event_type type)
{
	struct ibv_async_event ev;

	if (!vp_async(s->e.ctx, &ev, VP_DEADLINE_MS)) {
		CHECK(!"an async event");
		return;
	}
	CHECK_EQ(ev.event_type, type);
	CHECK(ev.element.qp == s->e.qp);
	ibv_ack_async_event(&ev);
	CHECK_EQ(vp_get_state(&s->e), IBV_QPS_ERR);
}

static void wrong_key(struct side *s)
{
	struct ibv_wc wc;

	check_case("a WRITE with a key that is none");
	if (s->asks) {
		s->peer.rkey ^= 0x5500;
		CHECK_EQ(vp_post_send(&s->e, 1, IBV_WR_RDMA_WRITE, 0, 0, 5000, &s->peer, 0), 0);
		vp_want(s->e.scq, &wc, IBV_WC_REM_ACCESS_ERR, 1);
		CHECK_EQ(vp_get_state(&s->e), IBV_QPS_ERR);
		return;
	}
	CHECK_EQ(vp_post_recv(&s->e, 2, 0, 100), 0);
	expect_event(s, IBV_EVENT_QP_ACCESS_ERR);
	vp_want(s->e.rcq, &wc, IBV_WC_WR_FLUSH_ERR, 2);
}

static void past_the_end(struct side *s)
{
	struct ibv_wc wc;

	check_case("a WRITE past the end of the region");
	if (s->asks) {
		CHECK_EQ(
			vp_post_send(&s->e, 1, IBV_WR_RDMA_WRITE, 0, 0, 5000, &s->peer, LEN - 4999),
			0);
		vp_want(s->e.scq, &wc, IBV_WC_REM_ACCESS_ERR, 1);
		return;
	}
	expect_event(s, IBV_EVENT_QP_ACCESS_ERR);
	CHECK(pattern_all(s->e.buf, LEN, 0));
}

static void small_receive(struct side *s)
{
	struct ibv_wc wc;

	check_case("a receive that is too small");
	if (!s->asks)
		CHECK_EQ(vp_post_recv(&s->e, 1, 0, 1500), 0);
	vp_sync(s->sock);
	if (s->asks) {
		CHECK_EQ(vp_post_send(&s->e, 1, IBV_WR_SEND, 0, 0, 1501, NULL, 0), 0);
		vp_want(s->e.scq, &wc, IBV_WC_REM_INV_REQ_ERR, 1);
	} else {
		vp_want(s->e.rcq, &wc, IBV_WC_LOC_LEN_ERR, 1);
		CHECK_EQ(vp_get_state(&s->e), IBV_QPS_ERR);
	}
}

static void in_error(struct side *s)
{
	struct ibv_wc wc;

	check_case("a responder in ERR, and both ends anew");
	if (!s->asks)
		CHECK_EQ(vp_state(&s->e, IBV_QPS_ERR), 0);
	vp_sync(s->sock);
	if (s->asks) {
		CHECK_EQ(vp_post_send(&s->e, 1, IBV_WR_SEND, 0, 0, 10, NULL, 0), 0);
		vp_want(s->e.scq, &wc, IBV_WC_RETRY_EXC_ERR, 1);
	}
	vp_sync(s->sock);
	CHECK_EQ(vp_state(&s->e, IBV_QPS_RESET), 0);
	vp_sync(s->sock);
	join(s);
	sends(s);
}

static void own_error(struct side *s)
{
	struct ibv_wc wc;

	check_case("a request that names memory of nobody");
	if (s->asks) {
		s->e.mr->lkey ^= 0x5500;
		CHECK_EQ(vp_post_send(&s->e, 1, IBV_WR_SEND, 0, 0, 2000, NULL, 0), 0);
		s->e.mr->lkey ^= 0x5500;
		vp_want(s->e.scq, &wc, IBV_WC_LOC_PROT_ERR, 1);
	}
}

/* Destroyed with requests that nobody answers. */
static void unanswered(struct side *s)
{
	check_case("requests that are still on their way");
	if (!s->asks)
		return;
	CHECK_EQ(vp_post_send(&s->e, 1, IBV_WR_SEND, 0, 0, 2000, NULL, 0), 0);
	await_rnrs(toy_count(TOY_RNRS) + 1);
}

/* ---- beside them ---- */

static void near_pair(struct vp_end *a, struct vp_end *b)
{
	struct ibv_wc wc;

	check_case("a pair that is near");
	pattern_fill(a->buf, 1000, 7);
	CHECK_EQ(vp_post_recv(b, 1, 0, 1000), 0);
	CHECK_EQ(vp_post_send(a, 2, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 1000, NULL, 0), 0);
	vp_want(a->scq, &wc, IBV_WC_SUCCESS, 2);
	vp_want(b->rcq, &wc, IBV_WC_SUCCESS, 1);
	CHECK(pattern_filled(b->buf, 1000, 7));
}

/* What a path to the toy's address answers, to a queue pair of its own receives or of others. */
static void nowhere(int own, int shared)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct vp_opts o = vp_defaults();
	struct ibv_context *ctx = vp_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct vp_addr to = {.qpn = 0x123456};
	struct vp_end e;

	check_case("who may go to another host");
	memcpy(to.gid.raw, toy_gid, sizeof toy_gid);
	for (unsigned i = 0; i < 2; i++) {
		vp_make(&e, ctx, &o);
		CHECK_EQ(vp_init(&e), 0);
		CHECK_EQ(vp_rtr(&e, &to), i ? shared : own);
		CHECK_EQ(vp_get_state(&e), i || own ? IBV_QPS_INIT : IBV_QPS_RTR);
		errno = 0;
		CHECK(!vp_ah(&e, &to.gid) && errno == EHOSTUNREACH);
		vp_free(&e);
		if (!i)
			o.srq = ibv_create_srq(pd, &attr);
	}
	CHECK_EQ(ibv_destroy_srq(o.srq), 0);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

/* In SQD the path may change, but not to another host. */
static void moved_away(struct vp_end *e)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};
	struct ibv_qp_init_attr init;

	check_case("a near pair whose path would lead elsewhere");
	CHECK_EQ(ibv_modify_qp(e->qp, &attr, IBV_QP_STATE), 0);
	CHECK_EQ(ibv_query_qp(e->qp, &attr, IBV_QP_AV, &init), 0);
	attr.qp_state = IBV_QPS_SQD;
	attr.ah_attr.grh.hop_limit = 7;
	CHECK_EQ(ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_AV), 0);
	memcpy(attr.ah_attr.grh.dgid.raw, toy_gid, sizeof toy_gid);
	attr.ah_attr.grh.sgid_index = VP_GID_INDEX_IPV6;
	CHECK_EQ(ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_AV), EINVAL);
}

static void with_end(struct side *s, uint8_t rnr_retry, void (*fn)(struct side *s))
{
	open_end(s, rnr_retry);
	fn(s);
	close_end(s);
}

static void messages(struct side *s)
{
	sends(s);
	if (!s->sends_only)
		writes(s);
	stream(s);
	late_receives(s);
}

static void run_side(struct side *s)
{
	void (*const errors[])(struct side * s) = {
		wrong_key, past_the_end, small_receive, in_error, own_error, unanswered};
	struct vp_opts o = vp_defaults();
	struct vp_end a, b;

	o.len = 4096;
	close(s->pair[!s->asks]);
	nowhere(EHOSTUNREACH, EHOSTUNREACH);
	CHECK_EQ(toy_open(s->pair[s->asks]), 0);
	nowhere(0, EHOSTUNREACH);
	vp_pair(&a, &b, &o);
	vp_sync(s->sock);
	with_end(s, 7, messages);
	with_end(s, 2, no_receives);
	for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++)
		with_end(s, 7, errors[i]);
	CHECK(!s->asks || toy_count(TOY_PIECES) > STREAM * 3);
	near_pair(&a, &b);
	moved_away(&a);
	vp_pair_free(&a, &b);
	toy_close();
}

static void other_side(int fd, void *arg)
{
	struct side s = *(struct side *)arg;

	s.sock = fd;
	run_side(&s);
}

int main(int argc, char **argv)
{
	struct side s = {.sends_only = argc > 1 && !strcmp(argv[1], "sends")};
	struct vp_child child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s.pair))
		die("socketpair");
	child = vp_fork(other_side, &s);
	s.sock = child.fd;
	s.asks = true;
	run_side(&s);
	vp_join(&child);
	return check_result();
}
