// SPDX-License-Identifier: BSD-3-Clause
/*
 * owned_ops [toy]: two processes move checked data to, from and between memory that only functions
 * reach (the toy of docs/howto/new-kind-of-memory.md), memory as it is, and lists of both, by every
 * kind of request; then functions that fail: completions as for missing memory.  toy: that memory
 * alone, which has a lock (of what an agent does to plain memory, ThreadSanitizer does not see that
 * another process has put it in order).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/weft/verbs_ext.h"
#include "tests/howto/memory/toy.h"
#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 1 << 20, AT = LEN / 2, EDGE = 64 };
#define TOY_IOVA 0x5a5a00000000ull

/* What a request's bytes lie in: the buffer, the toy, or a list that begins in the one and ends in
 * the other. */
enum place { PLAIN, TOY, MIXED, PLACES };

static const char *const names[PLACES] = {"plain", "toy", "mixed"};

static enum place first = PLAIN, last = MIXED;

struct side {
	struct vp_end e;
	struct toy toy;
	struct vp_addr peer;
	uint32_t peer_toy; /* its key */
	int sock;
	bool posts;
};

/* ---- bytes, wherever they lie ---- */

static size_t plain_part(enum place p, size_t len)
{
	return p == PLAIN ? len : p == TOY ? 0 : len / 2;
}

static void set_bytes(struct side *s, enum place p, size_t off, const uint8_t *from, size_t len)
{
	size_t n = plain_part(p, len);

	memcpy(s->e.buf + off, from, n);
	toy_put(&s->toy, off + n, from + n, len - n);
}

static void get_bytes(struct side *s, enum place p, size_t off, uint8_t *to, size_t len)
{
	size_t n = plain_part(p, len);

	memcpy(to, s->e.buf + off, n);
	toy_get(&s->toy, off + n, to + n, len - n);
}

/* The bytes lie at off, with EDGE bytes of another value before and behind them in both places. */
static void prepare(struct side *s, enum place p, size_t off, size_t len, const uint32_t *seed)
{
	static uint8_t bytes[LEN];

	memset(bytes, 0xee, len + 2 * EDGE);
	memcpy(s->e.buf + off - EDGE, bytes, len + 2 * EDGE);
	toy_put(&s->toy, off - EDGE, bytes, len + 2 * EDGE);
	if (!seed)
		return;
	pattern_fill(bytes, len, *seed);
	set_bytes(s, p, off, bytes, len);
}

static void check_bytes(struct side *s, enum place p, size_t off, size_t len, uint32_t seed)
{
	static uint8_t bytes[LEN];
	size_t n = plain_part(p, len);

	get_bytes(s, p, off, bytes, len);
	CHECK(pattern_filled(bytes, len, seed));
	CHECK(pattern_all(s->e.buf + off - EDGE, EDGE, 0xee));
	CHECK(pattern_all(s->e.buf + off + n, EDGE, 0xee));
	toy_get(&s->toy, off + n - EDGE, bytes, EDGE);
	CHECK(pattern_all(bytes, EDGE, 0xee));
	toy_get(&s->toy, off + len, bytes, EDGE);
	CHECK(pattern_all(bytes, EDGE, 0xee));
}

static int list(struct side *s, enum place p, size_t off, uint32_t len, struct ibv_sge sge[2])
{
	uint32_t n = plain_part(p, len);
	int used = 0;

	if (n)
		sge[used++] = vp_sge(&s->e, off, n);
	if (len > n)
		sge[used++] = (struct ibv_sge){
			.addr = s->toy.iova + off + n, .length = len - n, .lkey = s->toy.key};
	return used;
}

/* ---- one request ---- */

struct item {
	enum ibv_wr_opcode op;
	enum place from, to; /* of the one that posts, of the other */
	uint32_t len, seed;
};

static int post_request(struct side *s, const struct item *i)
{
	struct ibv_sge sge[2];
	struct ibv_send_wr wr = {.wr_id = i->seed,
				   .sg_list = sge,
				   .num_sge = list(s, i->from, AT, i->len, sge),
				   .opcode = i->op,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	uint64_t at = i->to == TOY ? TOY_IOVA + AT : s->peer.addr + AT;
	uint32_t rkey = i->to == TOY ? s->peer_toy : s->peer.rkey;

	vp_aim(&wr, at, rkey, i->seed);
	return ibv_post_send(s->e.qp, &wr, &bad);
}

static int post_receive(struct side *s, enum place p, uint32_t len)
{
	struct ibv_sge sge[2];
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = sge, .num_sge = list(s, p, AT, len, sge)},
			   *bad;

	return ibv_post_recv(s->e.qp, &wr, &bad);
}

static uint64_t word_at(struct side *s, enum place p)
{
	uint64_t word;

	get_bytes(s, p, AT, (uint8_t *)&word, sizeof word);
	return word;
}

static void act(struct side *s, const struct item *i)
{
	bool gets = i->op == IBV_WR_RDMA_READ || vp_is_atomic(i->op);
	struct ibv_wc wc;

	prepare(s, i->from, AT, i->len, gets ? NULL : &i->seed);
	vp_sync(s->sock);
	CHECK_EQ(post_request(s, i), 0);
	vp_want(s->e.scq, &wc, IBV_WC_SUCCESS, i->seed);
	vp_sync(s->sock);
	if (vp_is_atomic(i->op))
		CHECK_EQ(word_at(s, i->from), 1);
	else
		check_bytes(s, i->from, AT, i->len, i->seed);
}

static void suffer(struct side *s, const struct item *i)
{
	bool takes_recv = i->op == IBV_WR_SEND || i->op == IBV_WR_RDMA_WRITE_WITH_IMM;
	uint64_t one = 1;
	struct ibv_wc wc;

	prepare(s, i->to, AT, i->len, i->op == IBV_WR_RDMA_READ ? &i->seed : NULL);
	if (vp_is_atomic(i->op))
		set_bytes(s, i->to, AT, (uint8_t *)&one, sizeof one);
	if (takes_recv)
		CHECK_EQ(post_receive(s, i->to, i->op == IBV_WR_SEND ? i->len : 0), 0);
	vp_sync(s->sock);
	if (takes_recv) {
		vp_want(s->e.rcq, &wc, IBV_WC_SUCCESS, 1);
		CHECK_EQ(wc.byte_len, i->len);
	}
	vp_sync(s->sock);
	if (vp_is_atomic(i->op))
		CHECK_EQ(word_at(s, i->to), i->op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 2 : i->seed);
	else
		check_bytes(s, i->to, AT, i->len, i->seed);
}

static void one(struct side *s, struct item i)
{
	/* A list has two pieces; a key stands for one kind. */
	if ((i.from == MIXED && i.len < 2) || (i.to == MIXED && (i.len < 2 || i.op != IBV_WR_SEND)))
		return;
	check_case("%s: opcode %d of %u bytes, %s to %s", s->posts ? "posts" : "takes", i.op, i.len,
		names[i.from], names[i.to]);
	(s->posts ? act : suffer)(s, &i);
}

static void all_requests(struct side *s)
{
	static const enum ibv_wr_opcode moves[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ};
	static const uint32_t sizes[] = {1, 8, 37, 4096, 8191, 65537, 200001};
	uint32_t seed = 100;

	for (unsigned from = first; from <= last; from++)
		for (unsigned to = first; to <= last; to++) {
			for (unsigned k = 0; k < 4; k++)
				for (unsigned n = 0; n < sizeof sizes / sizeof *sizes; n++)
					one(s, (struct item){moves[k], from, to, sizes[n], seed++});
			if (from == MIXED)
				continue;
			one(s, (struct item){IBV_WR_ATOMIC_WRITE, from, to, 8, seed++});
			one(s, (struct item){IBV_WR_ATOMIC_FETCH_AND_ADD, from, to, 8, 7});
			one(s, (struct item){IBV_WR_ATOMIC_CMP_AND_SWP, from, to, 8, 8});
		}
}

/* ---- a receive that comes late, while the sender sleeps ---- */

static void late_receive(struct side *s, enum place from, enum place to, uint32_t len)
{
	struct item i = {IBV_WR_SEND, from, to, len, 5};
	struct ibv_wc wc;

	check_case("%s: a receive of %u bytes that comes late, %s to %s",
		s->posts ? "posts" : "takes", len, names[from], names[to]);
	prepare(s, s->posts ? from : to, AT, len, s->posts ? &i.seed : NULL);
	vp_sync(s->sock);
	if (s->posts) {
		CHECK_EQ(post_request(s, &i), 0);
		vp_sync(s->sock);
		vp_sync(s->sock);
		vp_want(s->e.scq, &wc, IBV_WC_SUCCESS, i.seed);
		return;
	}
	vp_sync(s->sock);
	CHECK_EQ(post_receive(s, to, len), 0);
	vp_want(s->e.rcq, &wc, IBV_WC_SUCCESS, 1);
	check_bytes(s, to, AT, len, i.seed);
	vp_sync(s->sock);
}

static void late_receives(struct side *s)
{
	for (unsigned from = first; from <= last; from++)
		for (unsigned to = first; to <= last; to++) {
			late_receive(s, from, to, 30);
			late_receive(s, from, to, 100000);
		}
}

/* ---- functions that fail ---- */

static void meet(struct side *s)
{
	if (vp_get_state(&s->e) != IBV_QPS_RESET)
		CHECK_EQ(vp_state(&s->e, IBV_QPS_RESET), 0);
	s->peer = vp_meet(&s->e, s->sock);
	vp_tell(s->sock, s->toy.key);
	s->peer_toy = vp_hear(s->sock);
	vp_sync(s->sock);
}

static void failing(struct side *s, struct item i, bool mine, enum ibv_wc_status status,
	enum ibv_wc_status received)
{
	struct ibv_wc wc;

	check_case("%s: opcode %d, functions of the %s fail", s->posts ? "posts" : "takes", i.op,
		mine ? "requester" : "responder");
	meet(s);
	atomic_store(&s->toy.broken, mine == s->posts);
	if (!s->posts && i.op == IBV_WR_SEND)
		CHECK_EQ(post_receive(s, i.to, i.len), 0);
	vp_sync(s->sock);
	if (s->posts) {
		CHECK_EQ(post_request(s, &i), 0);
		CHECK(vp_poll(s->e.scq, &wc, VP_DEADLINE_MS));
		CHECK_EQ(wc.status, status);
	} else if (received != IBV_WC_SUCCESS) {
		CHECK(vp_poll(s->e.rcq, &wc, VP_DEADLINE_MS));
		CHECK_EQ(wc.status, received);
	}
	vp_sync(s->sock);
	CHECK_EQ(vp_state(&s->e, IBV_QPS_RESET), 0);
	atomic_store(&s->toy.broken, false);
	while (ibv_poll_cq(s->e.rcq, 1, &wc) > 0)
		;
	vp_sync(s->sock);
}

static void failures(struct side *s)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP};

	for (unsigned k = 0; k < sizeof ops / sizeof *ops; k++) {
		failing(s, (struct item){ops[k], TOY, TOY, 8, 1}, true, IBV_WC_LOC_PROT_ERR, 0);
		failing(s, (struct item){ops[k], TOY, TOY, 8, 1}, false, IBV_WC_REM_ACCESS_ERR, 0);
	}
	failing(s, (struct item){IBV_WR_SEND, TOY, TOY, 8, 1}, true, IBV_WC_LOC_PROT_ERR, 0);
	failing(s, (struct item){IBV_WR_SEND, TOY, TOY, 8, 1}, false, IBV_WC_REM_OP_ERR,
		IBV_WC_LOC_PROT_ERR);
	meet(s);
}

/* ---- within a process, through a window ---- */

static void bind(struct vp_end *e, struct ibv_mw *mw, const struct toy *t)
{
	struct ibv_mr mr = {.context = e->ctx, .pd = e->pd, .lkey = t->key, .rkey = t->key};
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = &mr,
		.addr = TOY_IOVA + AT,
		.length = EDGE,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
	CHECK_EQ(vp_run(e, &wr), IBV_WC_SUCCESS);
	mw->rkey = wr.bind_mw.rkey;
}

static enum ibv_wc_status by_window(
	struct vp_end *a, enum ibv_wr_opcode op, uint32_t rkey, uint64_t at)
{
	struct ibv_sge sge = vp_sge(a, 0, EDGE);
	struct ibv_send_wr wr = {.sg_list = &sge,
		.num_sge = 1,
		.opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = at, .rkey = rkey}};

	return vp_run(a, &wr);
}

static void window(void)
{
	struct vp_opts o = vp_defaults();
	struct toy t;
	struct vp_end a, b;
	struct ibv_mw *mw;
	uint8_t bytes[EDGE];

	check_case("a window, within the process");
	vp_pair(&a, &b, &o);
	CHECK_EQ(toy_reg(&t, b.pd, LEN, TOY_IOVA, o.mr_access | IBV_ACCESS_MW_BIND), 0);
	mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	if (!mw)
		die("ibv_alloc_mw");
	bind(&b, mw, &t);
	pattern_fill(a.buf, EDGE, 1);
	CHECK_EQ(by_window(&a, IBV_WR_RDMA_WRITE, mw->rkey, TOY_IOVA + AT), IBV_WC_SUCCESS);
	toy_get(&t, AT, bytes, EDGE);
	CHECK(pattern_filled(bytes, EDGE, 1));
	memset(a.buf, 0, EDGE);
	CHECK_EQ(by_window(&a, IBV_WR_RDMA_READ, mw->rkey, TOY_IOVA + AT), IBV_WC_SUCCESS);
	CHECK(pattern_filled(a.buf, EDGE, 1));
	CHECK_EQ(by_window(&a, IBV_WR_RDMA_READ, mw->rkey, TOY_IOVA + AT + 1),
		IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(ibv_dealloc_mw(mw), 0);
	toy_dereg(&t);
	vp_pair_free(&a, &b);
}

/* ---- both processes ---- */

static void run(struct side *s)
{
	struct vp_opts o = vp_defaults();

	o.len = LEN;
	vp_make(&s->e, vp_open(), &o);
	CHECK_EQ(toy_reg(&s->toy, s->e.pd, LEN, TOY_IOVA, o.mr_access), 0);
	meet(s);
	for (int turn = 0; turn < 2; turn++, s->posts = !s->posts) {
		all_requests(s);
		late_receives(s);
		failures(s);
	}
	check_case("the functions were called");
	CHECK(atomic_load(&s->toy.calls) > 0);
	CHECK_EQ(ibv_destroy_qp(s->e.qp), 0);
	s->e.qp = NULL;
	toy_dereg(&s->toy);
	CHECK(!s->toy.store);
	vp_sync(s->sock);
	vp_free(&s->e);
	ibv_close_device(s->e.ctx);
}

static void run_far(int fd, void *arg)
{
	static struct side s;

	(void)arg;
	s.sock = fd;
	run(&s);
}

int main(int argc, char **argv)
{
	static struct side s = {.posts = true};
	struct vp_child far;

	if (argc > 1 && !strcmp(argv[1], "toy"))
		first = last = TOY;
	far = vp_fork(run_far, NULL);
	s.sock = far.fd;
	run(&s);
	vp_join(&far);
	window();
	return check_result();
}
