// SPDX-License-Identifier: BSD-3-Clause
/*
 * Two processes move checked data to, from and between memory of a fake GPU, whose addresses no
 * load or store reaches, and memory as it is: requests of each kind, datagrams, shared receive
 * queues, windows.  Then the GPU takes its memory away.  The client is a kernel module's source
 * (tests/peer_clients/nv.c), which WEFT_PEER_CLIENTS names.
 */
#include <string.h>

#include "include/weft/peercheck.h"
#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 512 << 10, AT = 65000, EDGE = 64, UD_LEN = 1000, GRH = 40 };

enum place { PLAIN, GPU, PLACES };

static const char *const names[PLACES] = {"plain", "gpu"};

struct side {
	struct vp_end e;
	const struct weft_peer_device *device;
	uint64_t gpu;
	struct ibv_mr *gpu_mr;
	struct vp_addr peer;
	uint64_t peer_gpu;
	uint32_t peer_gpu_key;
	int sock;
	bool posts;
};

/* ---- bytes, wherever they lie ---- */

static void set_bytes(struct side *s, enum place p, size_t off, const void *from, size_t n)
{
	if (p == PLAIN)
		memcpy(s->e.buf + off, from, n);
	else
		CHECK_EQ(s->device->write(s->gpu + off, from, n), 0);
}

static void get_bytes(struct side *s, enum place p, size_t off, void *to, size_t n)
{
	if (p == PLAIN)
		memcpy(to, s->e.buf + off, n);
	else
		CHECK_EQ(s->device->read(s->gpu + off, to, n), 0);
}

/* len bytes at AT, between others. */
static void prepare(struct side *s, enum place p, size_t len, const uint32_t *seed)
{
	static uint8_t bytes[LEN];

	memset(bytes, 0xee, len + 2 * EDGE);
	if (seed)
		pattern_fill(bytes + EDGE, len, *seed);
	set_bytes(s, p, AT - EDGE, bytes, len + 2 * EDGE);
}

static void check_bytes(struct side *s, enum place p, size_t len, uint32_t seed)
{
	static uint8_t bytes[LEN];

	get_bytes(s, p, AT - EDGE, bytes, len + 2 * EDGE);
	CHECK(pattern_all(bytes, EDGE, 0xee));
	CHECK(pattern_filled(bytes + EDGE, len, seed));
	CHECK(pattern_all(bytes + EDGE + len, EDGE, 0xee));
}

static uint64_t word_at(struct side *s, enum place p)
{
	uint64_t word;

	get_bytes(s, p, AT, &word, sizeof word);
	return word;
}

static struct ibv_sge sge_of(struct side *s, enum place p, uint32_t len)
{
	if (p == PLAIN)
		return vp_sge(&s->e, AT, len);
	return (struct ibv_sge){.addr = s->gpu + AT, .length = len, .lkey = s->gpu_mr->lkey};
}

/* ---- one request ---- */

struct item {
	enum ibv_wr_opcode op;
	enum place from, to; /* of the one that posts, of the other */
	uint32_t len, seed;
};

static bool is_atomic(const struct item *i)
{
	return i->op == IBV_WR_ATOMIC_CMP_AND_SWP || i->op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* Atomics lie at a multiple of 8, as AT does. */
static int post_request(struct side *s, const struct item *i)
{
	struct ibv_sge sge = sge_of(s, i->from, i->len);
	struct ibv_send_wr wr = {.wr_id = i->seed,
				   .sg_list = &sge,
				   .num_sge = 1,
				   .opcode = i->op,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	const uint64_t at = (i->to == GPU ? s->peer_gpu : s->peer.addr) + AT;
	const uint32_t rkey = i->to == GPU ? s->peer_gpu_key : s->peer.rkey;

	if (is_atomic(i)) {
		wr.wr.atomic.remote_addr = at;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.swap = i->seed;
	} else {
		wr.wr.rdma.remote_addr = at;
		wr.wr.rdma.rkey = rkey;
	}
	return ibv_post_send(s->e.qp, &wr, &bad);
}

static int post_receive(struct side *s, enum place p, uint32_t len)
{
	struct ibv_sge sge = sge_of(s, p, len);
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;

	return s->e.qp->srq ? ibv_post_srq_recv(s->e.qp->srq, &wr, &bad)
			    : ibv_post_recv(s->e.qp, &wr, &bad);
}

static void act(struct side *s, const struct item *i)
{
	const bool gets = i->op == IBV_WR_RDMA_READ || is_atomic(i);
	struct ibv_wc wc;

	prepare(s, i->from, i->len, gets ? NULL : &i->seed);
	vp_sync(s->sock);
	CHECK_EQ(post_request(s, i), 0);
	vp_want(s->e.scq, &wc, IBV_WC_SUCCESS, i->seed);
	vp_sync(s->sock);
	if (is_atomic(i))
		CHECK_EQ(word_at(s, i->from), 1);
	else
		check_bytes(s, i->from, i->len, i->seed);
}

static void suffer(struct side *s, const struct item *i)
{
	const bool takes_recv = i->op == IBV_WR_SEND || i->op == IBV_WR_RDMA_WRITE_WITH_IMM;
	const uint64_t one = 1;
	struct ibv_wc wc;

	prepare(s, i->to, i->len, i->op == IBV_WR_RDMA_READ ? &i->seed : NULL);
	if (is_atomic(i))
		set_bytes(s, i->to, AT, &one, sizeof one);
	if (takes_recv)
		CHECK_EQ(post_receive(s, i->to, i->len), 0);
	vp_sync(s->sock);
	if (takes_recv)
		vp_want(s->e.rcq, &wc, IBV_WC_SUCCESS, 1);
	vp_sync(s->sock);
	if (is_atomic(i))
		CHECK_EQ(word_at(s, i->to), i->op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 2 : i->seed);
	else
		check_bytes(s, i->to, i->len, i->seed);
}

static void one(struct side *s, struct item i)
{
	if (i.from == PLAIN && i.to == PLAIN)
		return;
	check_case("%s: opcode %d of %u bytes, %s to %s", s->posts ? "posts" : "takes", i.op, i.len,
		names[i.from], names[i.to]);
	(s->posts ? act : suffer)(s, &i);
}

static void all_requests(struct side *s)
{
	static const enum ibv_wr_opcode moves[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ};
	static const uint32_t sizes[] = {1, 8, 37, 4096, 65537, 300001};
	uint32_t seed = 100;

	for (unsigned from = 0; from < PLACES; from++)
		for (unsigned to = 0; to < PLACES; to++) {
			for (unsigned k = 0; k < 4; k++)
				for (unsigned n = 0; n < sizeof sizes / sizeof *sizes; n++)
					one(s, (struct item){moves[k], from, to, sizes[n], seed++});
			one(s, (struct item){IBV_WR_ATOMIC_FETCH_AND_ADD, from, to, 8, 7});
			one(s, (struct item){IBV_WR_ATOMIC_CMP_AND_SWP, from, to, 8, 8});
		}
}

/* ---- other queue pairs ---- */

static void meet(struct side *s)
{
	s->peer = vp_meet(&s->e, s->sock);
	vp_tell(s->sock, s->gpu);
	s->peer_gpu = vp_hear(s->sock);
	vp_tell(s->sock, s->gpu_mr->rkey);
	s->peer_gpu_key = (uint32_t)vp_hear(s->sock);
}

static void by_srq(struct side *s)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_qp *old = s->e.qp;

	check_case("%s: a shared receive queue", s->posts ? "posts" : "takes");
	s->e.opts.srq = ibv_create_srq(s->e.pd, &attr);
	CHECK(s->e.opts.srq);
	s->e.qp = vp_extra_qp(&s->e);
	CHECK(s->e.qp && s->e.qp->srq);
	meet(s);
	vp_sync(s->sock);
	one(s, (struct item){IBV_WR_SEND, GPU, GPU, 37, 1});
	one(s, (struct item){IBV_WR_SEND, GPU, GPU, 300001, 2});
	vp_sync(s->sock);
	CHECK_EQ(ibv_destroy_qp(s->e.qp), 0);
	CHECK_EQ(ibv_destroy_srq(s->e.opts.srq), 0);
	s->e.opts.srq = NULL;
	s->e.qp = old;
}

static void post_datagram(struct side *s, struct vp_end *ud, const struct vp_addr *peer)
{
	struct ibv_ah *ah = vp_ah(ud, &peer->gid);
	struct ibv_sge sge = sge_of(s, GPU, UD_LEN);
	struct ibv_send_wr wr = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED,
				   .wr.ud = {ah, peer->qpn, VP_QKEY}},
			   *bad;
	struct ibv_wc wc;

	CHECK(ah);
	CHECK_EQ(ibv_post_send(ud->qp, &wr, &bad), 0);
	vp_want(ud->scq, &wc, IBV_WC_SUCCESS, 0);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
}

/* Into the GPU's memory of the very PD. */
static void by_datagram(struct side *s)
{
	struct vp_opts o = vp_defaults();
	struct ibv_qp *rc = s->e.qp;
	const uint32_t seed = 77;
	struct vp_addr peer;
	struct ibv_wc wc;
	uint8_t got[UD_LEN];

	check_case("%s: a datagram", s->posts ? "posts" : "takes");
	o.type = s->e.opts.type;
	s->e.opts.type = IBV_QPT_UD;
	s->e.qp = vp_extra_qp(&s->e);
	CHECK(s->e.qp);
	peer = vp_meet(&s->e, s->sock);
	prepare(s, GPU, UD_LEN + GRH, s->posts ? &seed : NULL);
	if (!s->posts)
		CHECK_EQ(post_receive(s, GPU, UD_LEN + GRH), 0);
	vp_sync(s->sock);
	if (s->posts) {
		post_datagram(s, &s->e, &peer);
	} else {
		vp_want(s->e.rcq, &wc, IBV_WC_SUCCESS, 1);
		get_bytes(s, GPU, AT + GRH, got, sizeof got);
		CHECK(pattern_filled(got, sizeof got, seed));
	}
	vp_sync(s->sock);
	CHECK_EQ(ibv_destroy_qp(s->e.qp), 0);
	s->e.opts.type = o.type;
	s->e.qp = rc;
}

static void bind_window(struct side *s, struct ibv_mw *mw)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = s->gpu_mr,
		.addr = s->gpu + AT,
		.length = 4096,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
	CHECK_EQ(vp_run(&s->e, &wr), IBV_WC_SUCCESS);
	mw->rkey = wr.bind_mw.rkey;
}

/* The one that takes binds it; the other writes and reads by it. */
static void by_window(struct side *s)
{
	struct ibv_mw *mw = s->posts ? NULL : ibv_alloc_mw(s->e.pd, IBV_MW_TYPE_2);
	const uint32_t key = s->peer_gpu_key;

	check_case("%s: a window", s->posts ? "posts" : "takes");
	if (mw)
		bind_window(s, mw);
	vp_tell(s->sock, mw ? mw->rkey : 0);
	s->peer_gpu_key = (uint32_t)vp_hear(s->sock);
	one(s, (struct item){IBV_WR_RDMA_WRITE, GPU, GPU, 4096, 1});
	one(s, (struct item){IBV_WR_RDMA_READ, GPU, GPU, 4096, 2});
	vp_sync(s->sock);
	if (mw)
		CHECK_EQ(ibv_dealloc_mw(mw), 0);
	s->peer_gpu_key = key;
}

/* ---- the memory goes ---- */

static void taken_away(struct side *s)
{
	const struct item write = {IBV_WR_RDMA_WRITE, PLAIN, GPU, 100, 9};
	struct ibv_wc wc;

	check_case("%s: the GPU's memory goes", s->posts ? "posts" : "takes");
	vp_sync(s->sock);
	if (!s->posts)
		CHECK_EQ(s->device->free(s->gpu), 0);
	vp_sync(s->sock);
	if (s->posts) {
		CHECK_EQ(post_request(s, &write), 0);
		CHECK(vp_poll(s->e.scq, &wc, VP_DEADLINE_MS));
		CHECK_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
	}
	vp_sync(s->sock);
}

/* ---- both processes ---- */

static void register_gpu(struct side *s, int access)
{
	s->device = weft_kshim_device("nvidia");
	CHECK_EQ(s->device->alloc(LEN, &s->gpu), 0);
	s->gpu_mr = ibv_reg_mr(s->e.pd, (void *)s->gpu, LEN, access);
	if (!s->gpu_mr)
		die("ibv_reg_mr of the GPU's memory");
	CHECK(s->device->pinned() > 0);
}

static void run(struct side *s)
{
	struct vp_opts o = vp_defaults();

	o.len = LEN;
	vp_make(&s->e, vp_open(), &o);
	register_gpu(s, o.mr_access | IBV_ACCESS_MW_BIND);
	meet(s);
	for (int turn = 0; turn < 2; turn++, s->posts = !s->posts) {
		all_requests(s);
		by_srq(s);
		by_datagram(s);
		by_window(s);
	}
	taken_away(s);
	CHECK_EQ(ibv_dereg_mr(s->gpu_mr), 0);
	CHECK_EQ(s->device->pinned(), 0);
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

int main(void)
{
	static struct side s = {.posts = true};
	struct vp_child far = vp_fork(run_far, NULL);

	s.sock = far.fd;
	run(&s);
	vp_join(&far);
	return check_result();
}
