// SPDX-License-Identifier: BSD-3-Clause
/*
 * Two processes move checked data to, from and between memory of a fake GPU, whose addresses no
 * load or store reaches, and memory as it is: requests of each kind, and through windows.  Then the
 * GPU takes its memory away.  The client is a kernel module's source (tests/peer_clients/nv.c),
 * which WEFT_PEER_CLIENTS names.  peer_gpu_queues.c has other queues than a pair's own.
 */
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/places.h"

enum { SIZES = 6 };

static const uint32_t sizes[SIZES] = {1, 8, 37, 4096, 65537, 300001};

/* ---- requests that carry bytes ---- */

static void atomics(struct side *s)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_ATOMIC_WRITE, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP};

	for (enum place from = 0; from < PLACES; from++)
		for (enum place to = 0; to < PLACES; to++)
			for (unsigned i = 0; i < 3; i++)
				places_one(s, (struct item){ops[i], from, to, 8, 7 + i});
}

static void all_requests(struct side *s)
{
	static const enum ibv_wr_opcode moves[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ};

	for (unsigned k = 0; k < 4; k++)
		places_sizes(s, moves[k], sizes, SIZES, 100 + 100 * k);
	atomics(s);
}

/* ---- FLUSH ---- */

static void post_flushed(struct side *s, enum place from, enum place to, uint32_t len, uint8_t type)
{
	struct ibv_qp_ex *x = ibv_qp_to_qp_ex(s->e.qp);
	const uint64_t at = (to == GPU ? s->peer_gpu : s->peer.addr) + PLACES_AT;
	const uint32_t key = to == GPU ? s->peer_gpu_key : s->peer.rkey;
	const struct ibv_sge sge = places_sge(s, from, len);

	ibv_wr_start(x);
	x->wr_id = 1;
	x->wr_flags = 0;
	ibv_wr_rdma_write(x, key, at);
	ibv_wr_set_sge(x, sge.lkey, sge.addr, sge.length);
	x->wr_id = 2;
	x->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(x, key, at, len, type, IBV_FLUSH_RANGE);
	CHECK_EQ(ibv_wr_complete(x), 0);
}

/* What was written before is there once the FLUSH has completed. */
static void flush(struct side *s, enum place from, enum place to, uint8_t type)
{
	const uint32_t len = 65537, seed = 3;
	const enum place mine = s->posts ? from : to;
	struct ibv_wc wc;

	check_case("%s: FLUSH of type %d, %s to %s", s->posts ? "posts" : "takes", type,
		place_names[from], place_names[to]);
	places_prepare(s, mine, len, s->posts ? &seed : NULL);
	vp_sync(s->sock);
	if (s->posts) {
		post_flushed(s, from, to, len, type);
		vp_want(s->e.scq, &wc, IBV_WC_SUCCESS, 2);
	}
	vp_sync(s->sock);
	places_check(s, mine, 0, len, seed);
}

static void flushes(struct side *s)
{
	flush(s, PLAIN, GPU, IBV_FLUSH_GLOBAL);
	flush(s, GPU, PLAIN, IBV_FLUSH_GLOBAL);
	flush(s, GPU, GPU, IBV_FLUSH_GLOBAL);
	flush(s, PLAIN, GPU, IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT);
	vp_sync(s->sock);
}

/* ---- windows ---- */

static void bind_window(struct side *s, struct ibv_mw *mw)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = s->gpu_mr,
		.addr = s->gpu + PLACES_AT,
		.length = 65537,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC};
	CHECK_EQ(vp_run(&s->e, &wr), IBV_WC_SUCCESS);
	mw->rkey = wr.bind_mw.rkey;
}

static void through_window(struct side *s)
{
	for (enum place from = 0; from < PLACES; from++) {
		for (unsigned i = 0; i < SIZES - 1; i++) {
			places_one(s, (struct item){IBV_WR_RDMA_WRITE, from, GPU, sizes[i], 1});
			places_one(s, (struct item){IBV_WR_RDMA_READ, from, GPU, sizes[i], 2});
		}
		places_one(s, (struct item){IBV_WR_ATOMIC_FETCH_AND_ADD, from, GPU, 8, 3});
	}
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
	through_window(s);
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
		CHECK_EQ(places_post(s, &write), 0);
		CHECK(vp_poll(s->e.scq, &wc, VP_DEADLINE_MS));
		CHECK_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
	}
	vp_sync(s->sock);
}

/* ---- both processes ---- */

/* With the operations of ibv_wr_*, too. */
static struct ibv_qp *make_qp(struct vp_end *e)
{
	struct ibv_qp_init_attr_ex a = {.send_cq = e->scq,
		.recv_cq = e->rcq,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_FLUSH};
	struct ibv_qp *qp = ibv_create_qp_ex(e->ctx, &a);

	if (!qp)
		die("ibv_create_qp_ex");
	return qp;
}

static void run(struct side *s)
{
	struct vp_opts o = vp_defaults();

	o.len = PLACES_LEN;
	o.mr_access |= IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;
	o.qp_access |= IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;
	places_make(s, &o);
	CHECK_EQ(ibv_destroy_qp(s->e.qp), 0);
	s->e.qp = make_qp(&s->e);
	places_meet(s);
	for (int turn = 0; turn < 2; turn++, s->posts = !s->posts) {
		all_requests(s);
		flushes(s);
		by_window(s);
	}
	taken_away(s);
	places_free(s);
}

int main(void)
{
	places_both(run);
	return check_result();
}
