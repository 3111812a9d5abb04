// SPDX-License-Identifier: BSD-3-Clause
/*
 * Every RC operation with sizes around each limit of the data path, any number of SGEs on both
 * sides, the receive posted before and after the send; within a process and between two.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/far_end.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum {
	GUARD = 64,
	GUARD_BYTE = 0x5a,
	START = 4096 + 3, /* unaligned on purpose */
	GAP = 5,
	BUFFER = 10 << 20,
	MAX_SGE = 32,
	MAX_INLINE = 512,
};

/* What the far end is asked to do; in its own process or in ours. */
enum order { PREPARE, FILL, RECV, CHECK_BYTES, WAIT_RECV, QUIET, SUM };

struct request {
	enum order order;
	uint32_t len, nsge, seed;
	uint64_t id;
	uint32_t imm, opcode, flags; /* expected of the completion */
	uint32_t src_qp;
};

static struct vp_end far;         /* the far end's, where it lives in this process */
static struct vp_child *far_away; /* else the other process */

/* Cuts [START, ...) of the buffer into n pieces for len bytes, with gaps between. */
static void cut(const struct vp_end *e, uint32_t len, uint32_t n, struct ibv_sge *sge)
{
	size_t at = START;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t piece = len / n + (i < len % n);

		sge[i] = vp_sge(e, at, piece);
		at += piece + GAP;
	}
}

static void fill_pieces(struct vp_end *e, const struct request *r)
{
	struct ibv_sge sge[MAX_SGE];
	size_t k = 0;

	cut(e, r->len, r->nsge, sge);
	for (uint32_t i = 0; i < r->nsge; i++)
		for (uint32_t j = 0; j < sge[i].length; j++)
			((uint8_t *)(uintptr_t)sge[i].addr)[j] = pattern_byte(r->seed, k++);
}

/* The pieces hold the pattern; the gaps and what lies around is untouched. */
static void check_pieces(struct vp_end *e, const struct request *r)
{
	struct ibv_sge sge[MAX_SGE];
	uint8_t *at = e->buf + START;
	bool same = true;
	size_t k = 0;

	cut(e, r->len, r->nsge, sge);
	CHECK(pattern_all(at - GUARD, GUARD, GUARD_BYTE));
	for (uint32_t i = 0; i < r->nsge; i++) {
		at = (uint8_t *)(uintptr_t)sge[i].addr;
		for (uint32_t j = 0; j < sge[i].length; j++)
			same &= at[j] == pattern_byte(r->seed, k++);
		CHECK(pattern_all(at + sge[i].length, GAP, GUARD_BYTE));
	}
	CHECK(same);
	CHECK(pattern_all(at + (r->nsge ? sge[r->nsge - 1].length : 0), GUARD, GUARD_BYTE));
}

static void prepare(struct vp_end *e, const struct request *r)
{
	memset(e->buf + START - GUARD, GUARD_BYTE, r->len + r->nsge * GAP + 2 * GUARD);
}

static void wait_recv(struct vp_end *e, const struct request *r)
{
	struct ibv_wc wc;

	memset(&wc, 0xee, sizeof wc);
	if (!vp_want(e->rcq, &wc, IBV_WC_SUCCESS, r->id))
		return;
	CHECK_EQ(wc.opcode, r->opcode);
	CHECK_EQ(wc.byte_len, r->len);
	CHECK_EQ(wc.wc_flags, r->flags);
	if (r->flags & IBV_WC_WITH_IMM)
		CHECK_EQ(wc.imm_data, r->imm);
	CHECK_EQ(wc.qp_num, e->qp->qp_num);
	CHECK_EQ(wc.src_qp, r->src_qp);
}

static void post_recv(struct vp_end *e, const struct request *r)
{
	struct ibv_sge sge[MAX_SGE];
	struct ibv_recv_wr wr = {.wr_id = r->id, .sg_list = sge, .num_sge = r->nsge}, *bad;

	cut(e, r->len, r->nsge, sge);
	CHECK_EQ(ibv_post_recv(e->qp, &wr, &bad), 0);
}

static void do_order(struct vp_end *e, const struct request *r)
{
	check_case("far end: order %d, %u bytes, %u SGEs", r->order, r->len, r->nsge);
	switch (r->order) {
	case PREPARE:
		prepare(e, r);
		break;
	case FILL:
		prepare(e, r);
		fill_pieces(e, r);
		break;
	case RECV:
		post_recv(e, r);
		break;
	case CHECK_BYTES:
		check_pieces(e, r);
		break;
	case WAIT_RECV:
		wait_recv(e, r);
		break;
	case QUIET:
		vp_quiet(e->rcq, 20);
		break;
	case SUM:
		CHECK_EQ(*(uint64_t *)(e->buf), r->id);
		break;
	}
}

static char doing[128];

static void obey(void *e, int fd, const void *order, void *answer)
{
	(void)fd;
	(void)answer;
	do_order(e, order);
}

static struct vp_opts options(void)
{
	struct vp_opts o = vp_defaults();

	o.sge = MAX_SGE;
	o.max_inline = MAX_INLINE;
	o.len = BUFFER;
	return o;
}

static void *open_far(int fd, void *arg)
{
	struct vp_opts o = options();
	static struct vp_end e;

	(void)arg;
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, fd);
	return &e;
}

static void close_far(void *self)
{
	struct vp_end *e = self;

	vp_free(e);
	ibv_close_device(e->ctx);
}

static const struct far_kind obedient = {
	.order = sizeof(struct request),
	.answer = 1,
	.begin = open_far,
	.obey = obey,
	.end = close_far,
};

/* Has the far end do something, and waits until it has. */
static void far_do(enum order order, struct request r)
{
	uint8_t done;

	r.order = order;
	if (far_away) {
		far_ask(far_away, &obedient, &r, &done);
		return;
	}
	do_order(&far, &r);
	check_case("%s", doing);
}

/* ---- one operation ---- */

struct op {
	enum ibv_wr_opcode op;
	enum ibv_wc_opcode send_wc, recv_wc;
	bool takes_recv, imm, rdma;
	const char *name;
};

static const struct op ops[] = {
	{IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, true, false, false, "SEND"},
	{IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV, true, true, false, "SEND_WITH_IMM"},
	{IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, 0, false, false, true, "WRITE"},
	{IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM, true, true, true,
		"WRITE_WITH_IMM"},
	{IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, 0, false, false, true, "READ"},
};

enum { OPS = sizeof ops / sizeof *ops };

struct shape {
	uint32_t len, near_sges, far_sges;
	unsigned flags;
	bool send_first;
};

static void post(struct vp_end *e, const struct op *op, const struct shape *s, uint64_t id,
	uint32_t imm, const struct vp_addr *peer)
{
	struct ibv_sge sge[MAX_SGE];
	struct ibv_send_wr wr = {.wr_id = id,
		.sg_list = sge,
		.num_sge = s->near_sges,
		.opcode = op->op,
		.send_flags = s->flags,
		.imm_data = imm};
	struct ibv_send_wr *bad;

	cut(e, s->len, s->near_sges, sge);
	if (s->flags & IBV_SEND_INLINE)
		for (uint32_t i = 0; i < s->near_sges; i++)
			sge[i].lkey = 0xdeadbeef; /* not looked at */
	wr.wr.rdma.remote_addr = peer->addr + START;
	wr.wr.rdma.rkey = peer->rkey;
	CHECK_EQ(ibv_post_send(e->qp, &wr, &bad), 0);
	if (s->flags & IBV_SEND_INLINE)
		memset(e->buf + START, 0xff, s->len + s->near_sges * GAP); /* ours again */
}

static void one(
	struct vp_end *e, const struct op *op, const struct shape *s, const struct vp_addr *peer)
{
	static uint64_t id = 0x100000000ull;
	struct request near = {.len = s->len, .nsge = s->near_sges, .seed = (uint32_t)id};
	struct request away = near;
	struct ibv_wc wc;
	bool read = op->op == IBV_WR_RDMA_READ;

	id++;
	away.nsge = op->rdma ? 1 : s->far_sges;
	away.id = id + 7;
	away.imm = (uint32_t)id * 77;
	away.opcode = op->recv_wc;
	away.flags = op->imm ? IBV_WC_WITH_IMM : 0;
	away.src_qp = e->qp->qp_num;
	snprintf(doing, sizeof doing, "%s of %u bytes, SGEs %u to %u, flags %#x%s, %s", op->name,
		s->len, s->near_sges, s->far_sges, s->flags, s->send_first ? ", send first" : "",
		!far_away ? "in one process" : "between processes");
	check_case("%s", doing);

	prepare(e, &near);
	if (!read)
		fill_pieces(e, &near);
	far_do(read ? FILL : PREPARE, away);
	if (op->takes_recv && !s->send_first)
		far_do(RECV, away);
	post(e, op, s, id, away.imm, peer);
	if (op->takes_recv && s->send_first) {
		vp_quiet(e->scq, 0);
		far_do(RECV, away);
	}
	memset(&wc, 0xee, sizeof wc);
	if (vp_want(e->scq, &wc, IBV_WC_SUCCESS, id)) {
		CHECK_EQ(wc.opcode, op->send_wc);
		CHECK_EQ(wc.qp_num, e->qp->qp_num);
		if (read)
			CHECK_EQ(wc.byte_len, s->len);
	}
	if (op->takes_recv)
		far_do(WAIT_RECV, away);
	if (read)
		check_pieces(e, &near);
	else
		far_do(CHECK_BYTES, away);
}

static void sizes(struct vp_end *e, const struct vp_addr *peer)
{
	static const uint32_t lens[] = {0, 1, 7, 8, 35, 36, 37, 63, 64, 65, 511, 512, 4095, 4096,
		4097, 8191, 8192, 8193, 65535, 262143, 262144, 262145, (1 << 20) + 3, (8 << 20) - 1,
		9 << 20};

	for (unsigned i = 0; i < sizeof lens / sizeof *lens; i++)
		for (unsigned o = 0; o < OPS; o++)
			for (int send_first = 0; send_first <= ops[o].takes_recv; send_first++) {
				struct shape s = {.len = lens[i],
					.near_sges = 1,
					.far_sges = 1,
					.flags = IBV_SEND_SIGNALED,
					.send_first = send_first};

				one(e, &ops[o], &s, peer);
			}
}

static void no_sge(struct vp_end *e, const struct vp_addr *peer)
{
	for (unsigned o = 0; o < OPS; o++) {
		struct shape s = {.flags = IBV_SEND_SIGNALED};

		one(e, &ops[o], &s, peer);
	}
}

static void sges(struct vp_end *e, const struct vp_addr *peer)
{
	static const uint32_t counts[] = {1, 2, 3, 4, 5, 31, 32};
	static const uint32_t lens[] = {0, 3, 36, 37, 100, 4096, 5000, 100001};

	for (unsigned i = 0; i < sizeof lens / sizeof *lens; i++)
		for (unsigned n = 0; n < sizeof counts / sizeof *counts; n++)
			for (unsigned m = 0; m < sizeof counts / sizeof *counts; m++)
				for (unsigned o = 0; o < OPS; o++) {
					struct shape s = {.len = lens[i],
						.near_sges = counts[n],
						.far_sges = counts[m],
						.flags = IBV_SEND_SIGNALED,
						.send_first = ops[o].takes_recv && (n + m) % 2};

					if (!ops[o].rdma || !m)
						one(e, &ops[o], &s, peer);
				}
}

static void inlines(struct vp_end *e, const struct vp_addr *peer)
{
	for (uint32_t len = 0; len <= MAX_INLINE; len += len < 80 ? 1 : 27)
		for (unsigned o = 0; o < OPS - 1; o++)
			for (uint32_t n = 1; n <= 3; n += 2) {
				struct shape s = {.len = len,
					.near_sges = n,
					.far_sges = n,
					.flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
					.send_first = ops[o].takes_recv && len % 2};

				one(e, &ops[o], &s, peer);
			}
}

static void inline_limits(struct vp_end *e, const struct vp_addr *peer)
{
	struct ibv_sge sge[2] = {vp_sge(e, 0, MAX_INLINE), vp_sge(e, 0, 1)};
	struct ibv_send_wr wr = {.sg_list = sge,
		.num_sge = 2,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad = NULL;
	struct ibv_device_attr attr;

	check_case("inline: one byte too many; inline READ; too many SGEs; unknown opcode");
	CHECK_EQ(ibv_post_send(e->qp, &wr, &bad), EINVAL);
	CHECK(bad == &wr);
	wr.num_sge = 1;
	wr.opcode = IBV_WR_RDMA_READ;
	wr.wr.rdma.remote_addr = peer->addr;
	wr.wr.rdma.rkey = peer->rkey;
	bad = NULL;
	CHECK_EQ(ibv_post_send(e->qp, &wr, &bad), EINVAL);
	CHECK(bad == &wr);
	wr.send_flags = 0;
	wr.opcode = IBV_WR_SEND;
	wr.num_sge = MAX_SGE + 1;
	CHECK_EQ(ibv_post_send(e->qp, &wr, &bad), EINVAL);
	wr.num_sge = 1;
	wr.opcode = 99;
	CHECK_EQ(ibv_post_send(e->qp, &wr, &bad), EINVAL);
	check_case("a flag that nobody knows; one of a capability that weft0 has not");
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = IBV_SEND_IP_CSUM << 1;
	CHECK_EQ(ibv_post_send(e->qp, &wr, &bad), EINVAL);
	CHECK_EQ(ibv_query_device(e->ctx, &attr), 0);
	CHECK_EQ(attr.device_cap_flags & (IBV_DEVICE_UD_IP_CSUM | IBV_DEVICE_RAW_IP_CSUM), 0);
	wr.send_flags = IBV_SEND_IP_CSUM;
	CHECK_EQ(ibv_post_send(e->qp, &wr, &bad), EINVAL);
	vp_quiet(e->scq, 5);
	far_do(QUIET, (struct request){0});
}

/* ---- atomics ---- */

static uint64_t atomic(struct vp_end *e, enum ibv_wr_opcode op, uint64_t compare_add, uint64_t swap,
	const struct vp_addr *peer)
{
	struct ibv_sge sge = vp_sge(e, 8, 8);
	struct ibv_send_wr wr = {.wr_id = 5,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = {peer->addr, compare_add, swap, peer->rkey}};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	memset(e->buf, 0x77, 24);
	CHECK_EQ(ibv_post_send(e->qp, &wr, &bad), 0);
	if (vp_want(e->scq, &wc, IBV_WC_SUCCESS, 5)) {
		CHECK_EQ(wc.opcode,
			op == IBV_WR_ATOMIC_CMP_AND_SWP ? IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD);
		CHECK_EQ(wc.byte_len, 8);
	}
	CHECK(pattern_all(e->buf, 8, 0x77) && pattern_all(e->buf + 16, 8, 0x77));
	return *(uint64_t *)(e->buf + 8);
}

static void atomics(struct vp_end *e, const struct vp_addr *peer)
{
	enum ibv_wr_opcode cas = IBV_WR_ATOMIC_CMP_AND_SWP, add = IBV_WR_ATOMIC_FETCH_AND_ADD;

	check_case("atomics, %s", !far_away ? "in one process" : "between processes");
	CHECK_EQ(atomic(e, cas, 0, 10, peer), 0);
	CHECK_EQ(atomic(e, cas, 9, 99, peer), 10); /* no match: unchanged */
	CHECK_EQ(atomic(e, cas, 10, UINT64_MAX, peer), 10);
	CHECK_EQ(atomic(e, add, 3, 0, peer), UINT64_MAX); /* wraps */
	CHECK_EQ(atomic(e, add, 0, 0, peer), 2);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(atomic(e, add, 1ull << 32, 0, peer), 2 + ((uint64_t)i << 32));
	far_do(SUM, (struct request){.id = 2 + (100ull << 32)});
}

/* ---- the programs ---- */

static void all(struct vp_end *e, const struct vp_addr *peer)
{
	atomics(e, peer);
	no_sge(e, peer);
	sizes(e, peer);
	sges(e, peer);
	inlines(e, peer);
	inline_limits(e, peer);
}

static void two_processes(void)
{
	struct vp_child c = far_start(&obedient, NULL);
	struct vp_opts o = options();
	struct vp_addr peer;
	struct vp_end e;

	vp_make(&e, vp_open(), &o);
	peer = vp_meet(&e, c.fd);
	far_away = &c;
	all(&e, &peer);
	far_away = NULL;
	far_end(&c);
	vp_free(&e);
	ibv_close_device(e.ctx);
}

static void one_process(void)
{
	struct vp_opts o = options();
	struct vp_addr peer;
	struct vp_end e;

	vp_pair(&e, &far, &o);
	peer = vp_addr(&far);
	all(&e, &peer);
	vp_pair_free(&e, &far);
}

/* A QP connected to itself: its send consumes its own receive. */
static void to_itself(void)
{
	struct vp_opts o = options();
	struct vp_addr me;
	struct vp_end e;
	struct ibv_wc wc;

	check_case("a QP connected to itself");
	vp_make(&e, vp_open(), &o);
	me = vp_addr(&e);
	vp_connect(&e, &me);
	pattern_fill(e.buf, 6000, 1);
	CHECK_EQ(vp_post_recv(&e, 1, 1 << 20, 6000), 0);
	CHECK_EQ(vp_post_send(&e, 2, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 6000, NULL, 0), 0);
	vp_want(e.scq, &wc, IBV_WC_SUCCESS, 2);
	vp_want(e.rcq, &wc, IBV_WC_SUCCESS, 1);
	CHECK(pattern_filled(e.buf + (1 << 20), 6000, 1));
	CHECK_EQ(vp_post_send(&e, 3, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 100, NULL, 0), 0);
	CHECK_EQ(vp_post_recv(&e, 4, 2 << 20, 100), 0);
	vp_want(e.scq, &wc, IBV_WC_SUCCESS, 3);
	vp_want(e.rcq, &wc, IBV_WC_SUCCESS, 4);
	CHECK(pattern_filled(e.buf + (2 << 20), 100, 1));
	CHECK_EQ(
		vp_post_send(&e, 5, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 500, &me, 3 << 20), 0);
	vp_want(e.scq, &wc, IBV_WC_SUCCESS, 5);
	CHECK(pattern_filled(e.buf + (3 << 20), 500, 1));
	vp_free(&e);
	ibv_close_device(e.ctx);
}

int main(void)
{
	two_processes();
	one_process();
	to_itself();
	return check_result();
}
