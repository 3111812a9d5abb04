// SPDX-License-Identifier: BSD-3-Clause
/*
 * gpu_ops DRIVER: two processes move checked data to, from and between memory of a GPU and memory
 * of their own, by every kind of request: CUDA's, by pointer, of each way to allocate it.  DRIVER
 * is libcuda.so.1, or the fake one.
 */
#include <stdlib.h>
#include <string.h>

#include "include/weft/verbs_ext.h"
#include "tests/lib/check.h"
#include "tests/lib/cuda.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

/* Over the ends of pieces of 2 MiB, from AT on. */
enum { LEN = 5 << 20, AT = (2 << 20) - 4096, MOST = 2500000, EDGE = 64 };

enum place { PLAIN, GPU, MIXED, PLACES };

static const char *const names[PLACES] = {"plain", "gpu", "mixed"};

struct side {
	struct vp_end e;
	uint64_t gpu;
	struct ibv_mr *gpu_mr;
	struct vp_addr peer;
	uint64_t peer_gpu;
	uint32_t peer_gpu_key;
	int sock;
	bool posts;
};

static uint8_t scratch[MOST + 2 * EDGE];

/* ---- bytes, wherever they lie ---- */

static size_t plain_part(enum place p, size_t len)
{
	return p == PLAIN ? len : p == GPU ? 0 : len / 2;
}

static void set_bytes(struct side *s, enum place p, size_t off, const uint8_t *from, size_t len)
{
	size_t n = plain_part(p, len);

	memcpy(s->e.buf + off, from, n);
	if (len > n)
		cuda_put(s->gpu + off + n, from + n, len - n);
}

static void get_bytes(struct side *s, enum place p, size_t off, uint8_t *to, size_t len)
{
	size_t n = plain_part(p, len);

	memcpy(to, s->e.buf + off, n);
	if (len > n)
		cuda_get(to + n, s->gpu + off + n, len - n);
}

/* The bytes lie at AT, with EDGE bytes of another value before and behind them in both places. */
static void prepare(struct side *s, enum place p, size_t len, const uint32_t *seed)
{
	memset(scratch, 0xee, len + 2 * EDGE);
	memcpy(s->e.buf + AT - EDGE, scratch, len + 2 * EDGE);
	cuda_put(s->gpu + AT - EDGE, scratch, len + 2 * EDGE);
	if (!seed)
		return;
	pattern_fill(scratch, len, *seed);
	set_bytes(s, p, AT, scratch, len);
}

static void check_bytes(struct side *s, enum place p, size_t len, uint32_t seed)
{
	size_t n = plain_part(p, len);

	get_bytes(s, p, AT, scratch, len);
	CHECK(pattern_filled(scratch, len, seed));
	CHECK(pattern_all(s->e.buf + AT - EDGE, EDGE, 0xee));
	CHECK(pattern_all(s->e.buf + AT + n, EDGE, 0xee));
	cuda_get(scratch, s->gpu + AT + n - EDGE, EDGE);
	cuda_get(scratch + EDGE, s->gpu + AT + len, EDGE);
	CHECK(pattern_all(scratch, 2 * EDGE, 0xee));
}

static int list(struct side *s, enum place p, uint32_t len, struct ibv_sge sge[2])
{
	uint32_t n = plain_part(p, len);
	int used = 0;

	if (n)
		sge[used++] = vp_sge(&s->e, AT, n);
	if (len > n)
		sge[used++] = (struct ibv_sge){
			.addr = s->gpu + AT + n, .length = len - n, .lkey = s->gpu_mr->lkey};
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
				   .num_sge = list(s, i->from, i->len, sge),
				   .opcode = i->op,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	uint64_t at = (i->to == GPU ? s->peer_gpu : s->peer.addr) + AT;
	uint32_t rkey = i->to == GPU ? s->peer_gpu_key : s->peer.rkey;

	vp_aim(&wr, at, rkey, i->seed);
	return ibv_post_send(s->e.qp, &wr, &bad);
}

static void post_receive(struct side *s, enum place p, uint32_t len)
{
	struct ibv_sge sge[2];
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = sge, .num_sge = list(s, p, len, sge)}, *bad;

	CHECK_EQ(ibv_post_recv(s->e.qp, &wr, &bad), 0);
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

	prepare(s, i->from, i->len, gets ? NULL : &i->seed);
	vp_sync(s->sock);
	CHECK_EQ(post_request(s, i), 0);
	vp_want(s->e.scq, &wc, IBV_WC_SUCCESS, i->seed);
	vp_sync(s->sock);
	if (vp_is_atomic(i->op))
		CHECK_EQ(word_at(s, i->from), 1);
	else
		check_bytes(s, i->from, i->len, i->seed);
}

static void suffer(struct side *s, const struct item *i)
{
	bool takes_recv = i->op == IBV_WR_SEND || i->op == IBV_WR_RDMA_WRITE_WITH_IMM;
	uint64_t one = 1;
	struct ibv_wc wc;

	prepare(s, i->to, i->len, i->op == IBV_WR_RDMA_READ ? &i->seed : NULL);
	if (vp_is_atomic(i->op))
		set_bytes(s, i->to, AT, (uint8_t *)&one, sizeof one);
	if (takes_recv)
		post_receive(s, i->to, i->op == IBV_WR_SEND ? i->len : 0);
	vp_sync(s->sock);
	if (takes_recv) {
		vp_want(s->e.rcq, &wc, IBV_WC_SUCCESS, 1);
		CHECK_EQ(wc.byte_len, i->len);
	}
	vp_sync(s->sock);
	if (vp_is_atomic(i->op))
		CHECK_EQ(word_at(s, i->to), i->op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 2 : i->seed);
	else
		check_bytes(s, i->to, i->len, i->seed);
}

static void one(struct side *s, struct item i)
{
	/* A list has two pieces; a key stands for one place. */
	if ((i.from == MIXED && i.len < 2) || (i.to == MIXED && (i.len < 2 || i.op != IBV_WR_SEND)))
		return;
	check_case("%s: opcode %d of %u bytes, %s to %s", s->posts ? "posts" : "takes", i.op, i.len,
		names[i.from], names[i.to]);
	(s->posts ? act : suffer)(s, &i);
}

/* But what goes from plain memory to plain memory. */
static void all_requests(struct side *s, bool all_sizes)
{
	static const enum ibv_wr_opcode moves[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ};
	static const uint32_t sizes[] = {1, 8, 37, 8191, 262145, MOST};
	uint32_t seed = 100;

	for (unsigned both = PLAIN * PLACES + GPU; both < PLACES * PLACES; both++) {
		enum place from = both / PLACES, to = both % PLACES;

		for (unsigned k = 0; k < 4; k++)
			for (unsigned n = 0; n < sizeof sizes / sizeof *sizes;
				n += all_sizes ? 1 : 5)
				one(s, (struct item){moves[k], from, to, sizes[n], seed++});
		if (from == MIXED)
			continue;
		one(s, (struct item){IBV_WR_ATOMIC_FETCH_AND_ADD, from, to, 8, 7});
		one(s, (struct item){IBV_WR_ATOMIC_CMP_AND_SWP, from, to, 8, 8});
	}
}

/* ---- a flush and an atomic write ---- */

static void flush_and_store(struct side *s)
{
	static const uint8_t word[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct ibv_qp_ex *x = ibv_qp_to_qp_ex(s->e.qp);
	struct ibv_wc wc;

	check_case("%s: FLUSH, ATOMIC WRITE", s->posts ? "posts" : "takes");
	prepare(s, GPU, 8, NULL);
	vp_sync(s->sock);
	if (s->posts) {
		ibv_wr_start(x);
		x->wr_flags = IBV_SEND_SIGNALED;
		x->wr_id = 1;
		ibv_wr_atomic_write(x, s->peer_gpu_key, s->peer_gpu + AT, word);
		x->wr_id = 2;
		ibv_wr_flush(
			x, s->peer_gpu_key, s->peer_gpu + AT, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
		CHECK_EQ(ibv_wr_complete(x), 0);
		vp_want(s->e.scq, &wc, IBV_WC_SUCCESS, 1);
		vp_want(s->e.scq, &wc, IBV_WC_SUCCESS, 2);
	}
	vp_sync(s->sock);
	if (!s->posts) {
		get_bytes(s, GPU, AT, scratch, 8);
		CHECK(!memcmp(scratch, word, sizeof word));
	}
	vp_sync(s->sock);
}

/* ---- both processes ---- */

static struct vp_opts options(void)
{
	struct vp_opts o = vp_defaults();

	o.len = LEN;
	o.mr_access |= IBV_ACCESS_FLUSH_GLOBAL;
	o.qp_access |= IBV_ACCESS_FLUSH_GLOBAL;
	return o;
}

/* With the operations of ibv_wr_*, too. */
static void make_qp(struct vp_end *e)
{
	struct ibv_qp_init_attr_ex a = {.send_cq = e->scq,
		.recv_cq = e->rcq,
		.cap = {.max_send_wr = 16,
			.max_recv_wr = 16,
			.max_send_sge = 4,
			.max_recv_sge = 4,
			.max_inline_data = 64},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e->pd,
		.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_FLUSH};

	CHECK_EQ(ibv_destroy_qp(e->qp), 0);
	e->qp = ibv_create_qp_ex(e->ctx, &a);
	if (!e->qp)
		die("ibv_create_qp_ex");
}

static void use(struct side *s, enum cuda_memory from, const struct vp_opts *o)
{
	s->gpu = cuda_alloc(from, LEN);
	s->gpu_mr = ibv_reg_mr(s->e.pd, (void *)(uintptr_t)s->gpu, LEN, o->mr_access);
	if (!s->gpu_mr)
		die("ibv_reg_mr of device memory %d", from);
	vp_tell(s->sock, s->gpu);
	s->peer_gpu = vp_hear(s->sock);
	vp_tell(s->sock, s->gpu_mr->rkey);
	s->peer_gpu_key = vp_hear(s->sock);
	vp_sync(s->sock);
	for (int turn = 0; turn < 2; turn++, s->posts = !s->posts) {
		all_requests(s, from == CUDA_PLAIN);
		flush_and_store(s);
	}
	vp_sync(s->sock);
	CHECK_EQ(ibv_dereg_mr(s->gpu_mr), 0);
}

static void check_driver_calls(void)
{
	struct fake_cuda_report r;

	if (!cuda.fake_cuda_report)
		return;
	check_case("what the HCA called of the driver");
	cuda.fake_cuda_report(&r);
	CHECK(r.by_own_threads > 0);
	CHECK_EQ(r.inits, 0);
	CHECK_EQ(r.default_stream, 0);
	CHECK_EQ(r.context_syncs, 0);
	CHECK_EQ(r.unsafe, 0);
	CHECK_EQ(r.freed, 0);
	CHECK_EQ(r.no_context, 0);
	CHECK_EQ(r.after_fork, 0);
}

static void run(struct side *s)
{
	const struct vp_opts o = options();

	cuda_start();
	vp_make(&s->e, vp_open(), &o);
	make_qp(&s->e);
	s->peer = vp_meet(&s->e, s->sock);
	for (enum cuda_memory from = 0; from < CUDA_MEMORIES; from++)
		use(s, from, &o);
	check_driver_calls();
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

static void look_for_device(int fd, void *arg)
{
	(void)arg;
	vp_tell(fd, cuda_works());
}

int main(int argc, char **argv)
{
	static struct side s = {.posts = true};
	struct vp_child far;

	cuda_load(argc > 1 ? argv[1] : "libcuda.so.1");
	/* A process that has initialised it cannot fork one that uses it. */
	far = vp_fork(look_for_device, NULL);
	if (!vp_hear(far.fd))
		exit(77);
	vp_join(&far);
	far = vp_fork(run_far, NULL);
	s.sock = far.fd;
	run(&s);
	vp_join(&far);
	return check_result();
}
