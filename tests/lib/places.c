// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/places.h"

#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"

const char *const place_names[PLACES] = {"plain", "gpu"};

/* ---- both sides ---- */

void places_make(struct side *s, const struct vp_opts *o)
{
	vp_make(&s->e, vp_open(), o);
	s->device = weft_kshim_device("nvidia");
	CHECK_EQ(s->device->alloc(PLACES_LEN, &s->gpu), 0);
	s->gpu_mr =
		ibv_reg_mr(s->e.pd, (void *)s->gpu, PLACES_LEN, o->mr_access | IBV_ACCESS_MW_BIND);
	if (!s->gpu_mr)
		die("ibv_reg_mr of the GPU's memory");
	CHECK(s->device->pinned() > 0);
}

void places_free(struct side *s)
{
	CHECK_EQ(ibv_dereg_mr(s->gpu_mr), 0);
	CHECK_EQ(s->device->pinned(), 0);
	vp_free(&s->e);
	CHECK_EQ(ibv_close_device(s->e.ctx), 0);
}

void places_tell(struct side *s)
{
	vp_tell(s->sock, s->gpu);
	s->peer_gpu = vp_hear(s->sock);
	vp_tell(s->sock, s->gpu_mr->rkey);
	s->peer_gpu_key = (uint32_t)vp_hear(s->sock);
}

void places_meet(struct side *s)
{
	s->peer = vp_meet(&s->e, s->sock);
	places_tell(s);
}

/* ---- bytes, wherever they lie ---- */

void places_set(struct side *s, enum place p, size_t off, const void *from, size_t n)
{
	if (p == PLAIN)
		memcpy(s->e.buf + off, from, n);
	else
		CHECK_EQ(s->device->write(s->gpu + off, from, n), 0);
}

void places_get(struct side *s, enum place p, size_t off, void *to, size_t n)
{
	if (p == PLAIN)
		memcpy(to, s->e.buf + off, n);
	else
		CHECK_EQ(s->device->read(s->gpu + off, to, n), 0);
}

void places_prepare(struct side *s, enum place p, size_t len, const uint32_t *seed)
{
	static uint8_t bytes[PLACES_LEN];

	memset(bytes, 0xee, len + 2 * PLACES_EDGE);
	if (seed)
		pattern_fill(bytes + PLACES_EDGE, len, *seed);
	places_set(s, p, PLACES_AT - PLACES_EDGE, bytes, len + 2 * PLACES_EDGE);
}

void places_check(struct side *s, enum place p, size_t skip, size_t len, uint32_t seed)
{
	static uint8_t bytes[PLACES_LEN];

	places_get(s, p, PLACES_AT - PLACES_EDGE, bytes, skip + len + 2 * PLACES_EDGE);
	CHECK(pattern_all(bytes, PLACES_EDGE, 0xee));
	CHECK(pattern_filled(bytes + PLACES_EDGE + skip, len, seed));
	CHECK(pattern_all(bytes + PLACES_EDGE + skip + len, PLACES_EDGE, 0xee));
}

static uint64_t word_at(struct side *s, enum place p)
{
	uint64_t word;

	places_get(s, p, PLACES_AT, &word, sizeof word);
	return word;
}

struct ibv_sge places_sge(const struct side *s, enum place p, uint32_t len)
{
	if (p == PLAIN)
		return vp_sge(&s->e, PLACES_AT, len);
	return (struct ibv_sge){.addr = s->gpu + PLACES_AT, .length = len, .lkey = s->gpu_mr->lkey};
}

/* ---- one request ---- */

/* Atomics lie at a multiple of 8, as PLACES_AT does. */
int places_post(struct side *s, const struct item *i)
{
	struct ibv_sge sge = places_sge(s, i->from, i->len);
	struct ibv_send_wr wr = {.wr_id = i->seed,
				   .sg_list = &sge,
				   .num_sge = 1,
				   .opcode = i->op,
				   .send_flags = IBV_SEND_SIGNALED,
				   .qp_type.xrc.remote_srqn = s->peer_srqn},
			   *bad;
	const uint64_t at = (i->to == GPU ? s->peer_gpu : s->peer.addr) + PLACES_AT;
	const uint32_t rkey = i->to == GPU ? s->peer_gpu_key : s->peer.rkey;

	vp_aim(&wr, at, rkey, i->seed);
	return ibv_post_send(s->e.qp, &wr, &bad);
}

int places_post_receive(struct side *s, enum place p, uint32_t len)
{
	struct ibv_sge sge = places_sge(s, p, len);
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;

	return s->srq ? ibv_post_srq_recv(s->srq, &wr, &bad) : ibv_post_recv(s->e.qp, &wr, &bad);
}

static void act(struct side *s, const struct item *i)
{
	const bool gets = i->op == IBV_WR_RDMA_READ || vp_is_atomic(i->op);
	struct ibv_wc wc;

	places_prepare(s, i->from, i->len, gets ? NULL : &i->seed);
	vp_sync(s->sock);
	CHECK_EQ(places_post(s, i), 0);
	vp_want(s->e.scq, &wc, IBV_WC_SUCCESS, i->seed);
	vp_sync(s->sock);
	if (vp_is_atomic(i->op))
		CHECK_EQ(word_at(s, i->from), 1);
	else
		places_check(s, i->from, 0, i->len, i->seed);
}

static void suffer(struct side *s, const struct item *i)
{
	const bool takes_recv = i->op == IBV_WR_SEND || i->op == IBV_WR_RDMA_WRITE_WITH_IMM;
	const uint64_t one = 1;
	struct ibv_wc wc;

	places_prepare(s, i->to, i->len, i->op == IBV_WR_RDMA_READ ? &i->seed : NULL);
	if (vp_is_atomic(i->op))
		places_set(s, i->to, PLACES_AT, &one, sizeof one);
	if (takes_recv)
		CHECK_EQ(places_post_receive(s, i->to, i->len), 0);
	vp_sync(s->sock);
	if (takes_recv)
		vp_want(s->e.rcq, &wc, IBV_WC_SUCCESS, 1);
	vp_sync(s->sock);
	if (vp_is_atomic(i->op))
		CHECK_EQ(word_at(s, i->to), i->op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 2 : i->seed);
	else
		places_check(s, i->to, 0, i->len, i->seed);
}

void places_one(struct side *s, struct item i)
{
	if (i.from == PLAIN && i.to == PLAIN)
		return;
	check_case("%s: opcode %d of %u bytes, %s to %s", s->posts ? "posts" : "takes", i.op, i.len,
		place_names[i.from], place_names[i.to]);
	(s->posts ? act : suffer)(s, &i);
}

void places_sizes(
	struct side *s, enum ibv_wr_opcode op, const uint32_t *sizes, unsigned n, uint32_t seed)
{
	for (enum place from = 0; from < PLACES; from++)
		for (enum place to = 0; to < PLACES; to++)
			for (unsigned i = 0; i < n; i++)
				places_one(s, (struct item){op, from, to, sizes[i], seed++});
}

/* ---- both processes ---- */

static void run_far(int fd, void *arg)
{
	static struct side s;
	void (**run)(struct side *) = arg;

	s.sock = fd;
	(*run)(&s);
}

void places_both(void (*run)(struct side *s))
{
	static struct side s = {.posts = true};
	struct vp_child far = vp_fork(run_far, &run);

	s.sock = far.fd;
	run(&s);
	vp_join(&far);
}
